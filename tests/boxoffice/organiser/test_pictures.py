"""Pictures of events: whatever is uploaded becomes one small JPEG without metadata, or is refused by name."""

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from frontrow.boxoffice.events.model.pictures import MAX_UPLOAD_BYTES
from frontrow.boxoffice.events.pictures import MAX_BYTES, prepare_picture
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.errors import InvalidInput
from tests.boxoffice.people.support import api_key, fan, member
from tests.support.browser_headers import BROWSER
from tests.support.pictures import a_picture, bomb
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (a_picture("JPEG", (3000, 2000)), (1200, 630)),
        (a_picture("PNG", (2000, 2000), "RGBA"), (1200, 630)),
        (a_picture("WEBP", (600, 600)), (600, 315)),
        (a_picture("PNG", (1300, 650), "P"), (1200, 630)),
    ],
)
def test_a_picture_is_cropped_and_written_anew(raw: bytes, size: tuple[int, int]) -> None:
    made = prepare_picture(base64.b64encode(raw))
    image = Image.open(io.BytesIO(made.body))
    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", size)
    assert len(made.body) <= MAX_BYTES
    assert prepare_picture(base64.b64encode(raw)) == made


def test_metadata_is_gone_and_the_picture_upright() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "a camera that tells on its owner"  # turned; the maker
    raw = a_picture("JPEG", (400, 900), exif=exif)
    assert b"tells on its owner" in raw
    made = prepare_picture(base64.b64encode(raw))
    image = Image.open(io.BytesIO(made.body))
    assert not image.getexif()
    assert b"tells on its owner" not in made.body
    assert image.size[0] > image.size[1]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"GIF89a not a picture we take",
        a_picture("GIF"),
        b"<svg onload=alert(1)>",
        a_picture()[:200],
        a_picture(size=(100, 900)),
        bomb(60_000, 60_000),
        bomb(2**31 - 1, 2**31 - 1),
        b"\xff\xd8\xff" + bytes(100),
        bytes(MAX_UPLOAD_BYTES + 1),
    ],
)
def test_what_is_no_picture_is_refused_by_name(raw: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        prepare_picture(raw)
    assert refused.value.param == "picture"


async def test_an_uploaded_picture_is_shown_for_ever_and_can_be_removed(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, organiser_id="org_hall")
        staff = await member(platform, Role.OWNER, "org_hall")
        key = {"authorization": f"Bearer {await api_key(platform, staff, ['events:write'])}"}
        path = f"/v1/organiser/events/{EVENT_ID}/picture"
        picture = {"picture": base64.b64encode(a_picture()).decode()}
        bad = await client.put(path, json={"picture": base64.b64encode(b"rubbish").decode()}, headers=key)
        assert (bad.status_code, bad.json()["param"]) == (422, "picture")
        stranger = {"authorization": f"Bearer {(await fan(platform)).session}"}
        assert (await client.put(path, json=picture, headers=stranger)).status_code in (401, 403)
        put = await client.put(path, json=picture, headers=key)
        assert put.status_code == 200, put.text
        shown = await client.get(put.json()["url"], headers=BROWSER)
        assert (shown.headers["content-type"], shown.headers["cache-control"]) == (
            "image/jpeg",
            "public, max-age=31536000, immutable",
        )
        page = (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        assert f'src="{put.json()["url"]}"' in page
        assert f'content="{platform.settings.public_url}{put.json()["url"]}"' in page
        assert (await client.delete(path, headers=key)).json() == {"url": ""}
        assert "/pictures/" not in (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        assert (await client.get("/pictures/none", headers=BROWSER)).status_code == 404
