package frontrow;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Logger;

/** Carries out what {@link Connector} decides: exchanges, renews and ends, and follows the room's keys and ended visits. */
public final class Room {
    private static final Logger LOG = Logger.getLogger("frontrow");
    private static final int TIMEOUT_MS = 2000, FOLLOW_MS = 2000, MAX_ANSWER = 4194304;
    private final Connector.Setup setup;
    private final SecureRandom random = new SecureRandom();
    private final ReentrantLock asking = new ReentrantLock();
    private volatile Connector.Known known = new Connector.Known();
    private volatile long askedNs = System.nanoTime() - 3_600_000_000_000L;

    public Room(Connector.Setup setup) {
        this.setup = setup;
    }

    /** The action is then pass, open, strip, room, refuse, end or away. */
    public Connector.Decision handle(String method, String target, Map<String, String> headers) {
        byte[] raw = new byte[32];
        random.nextBytes(raw);
        String fresh = Connector.base64(raw);
        follow(FOLLOW_MS);
        Connector.Decision done = Connector.decide(setup, known, method, target, headers, System.currentTimeMillis() / 1000, fresh);
        if (done.code.equals("key_unknown")) { // a new key, perhaps
            follow(500);
            done = Connector.decide(setup, known, method, target, headers, System.currentTimeMillis() / 1000, fresh);
        }
        if (done.action.equals("exchange")) return exchange(done);
        if (done.action.equals("end") && !done.given.isEmpty()) call("/give-back", "", done.given);
        if (done.code.equals("key_unknown") && known.keys.isEmpty()) return new Connector.Decision("away");
        if (done.renew) {
            Answer answer = call("/renew", "", done.given);
            String line = setup.cookieLine("kept", "1", Connector.KEPT_COOKIE_S);
            if (answer.status == 200) line = setup.cookieLine("pass", (String) answer.told.get("pass"), Connector.PASS_COOKIE_S);
            done.cookies = List.of(line);
        }
        return done;
    }

    private Connector.Decision exchange(Connector.Decision asked) {
        String form = "token=" + URLEncoder.encode(asked.token, StandardCharsets.UTF_8) + "&verifier=" + URLEncoder.encode(asked.verifier, StandardCharsets.UTF_8);
        Answer answer = call("/exchange", form, "");
        if (answer.status == 0 || answer.status >= 500) return new Connector.Decision("away");
        if (answer.status != 200) return Connector.toRoom(setup, asked.page, asked.verifier, "", "pass_required");
        askedNs -= 3_600_000_000_000L; // its key may be new
        Connector.Decision strip = new Connector.Decision("strip");
        strip.location = asked.page;
        strip.cookies = List.of(setup.cookieLine("pass", (String) answer.told.get("pass"), Connector.PASS_COOKIE_S));
        return strip;
    }

    private boolean isOlder(long maxAgeMs) {
        return System.nanoTime() - askedNs >= 1_000_000 * (known.keys.isEmpty() ? 500 : maxAgeMs);
    }

    /** Ask the room for its keys and for the visits that ended, unless that was done just now. One caller asks, the
     * others go on; only the first keys are waited for. */
    private void follow(long maxAgeMs) {
        if (!isOlder(maxAgeMs)) return;
        if (known.keys.isEmpty()) asking.lock();
        else if (!asking.tryLock()) return;
        try {
            if (!isOlder(maxAgeMs)) return;
            Answer answer = call("/connector?after=" + URLEncoder.encode(known.mark, StandardCharsets.UTF_8), null, "");
            askedNs = System.nanoTime();
            if (answer.status != 200) return;
            known = Connector.learn(known, answer.told);
            if (!Boolean.TRUE.equals(answer.told.get("complete"))) askedNs -= 3_600_000_000_000L;
        } catch (GeneralSecurityException | RuntimeException error) {
            LOG.warning("frontrow: the waiting room at " + setup.room + " told what nobody understands: " + error);
        } finally {
            asking.unlock();
        }
    }

    private static final class Answer {
        int status;
        Map<?, ?> told = Map.of();
    }

    /** Status and JSON of a call to the room; status 0 if it does not answer. */
    private Answer call(String endpoint, String body, String given) {
        Answer answer = new Answer();
        try {
            HttpURLConnection line = (HttpURLConnection) new URL(setup.room + endpoint).openConnection();
            line.setConnectTimeout(TIMEOUT_MS);
            line.setReadTimeout(TIMEOUT_MS);
            line.setInstanceFollowRedirects(false);
            if (!given.isEmpty()) line.setRequestProperty("Frontrow-Pass", given);
            if (body != null) {
                line.setRequestMethod("POST");
                line.setDoOutput(true);
                line.setRequestProperty("Content-Type", "application/x-www-form-urlencoded");
                try (OutputStream out = line.getOutputStream()) {
                    out.write(body.getBytes(StandardCharsets.UTF_8));
                }
            }
            int status = line.getResponseCode();
            try (InputStream in = status < 400 ? line.getInputStream() : line.getErrorStream()) {
                answer.told = (Map<?, ?>) Json.read(new String(in.readNBytes(MAX_ANSWER), StandardCharsets.UTF_8));
            }
            answer.status = status;
        } catch (IOException | RuntimeException error) {
            LOG.warning("frontrow: the waiting room at " + setup.room + " does not answer: " + error);
        }
        return answer;
    }

    static final String AWAY = "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\"><title>One moment</title>"
        + "<p>The waiting room does not answer. This page tries again by itself.";

    /** The body of a refusal. */
    String problem(String code, int status) {
        String title = code.substring(0, 1).toUpperCase() + code.substring(1).replace('_', ' ');
        return String.format("{\"type\":\"urn:frontrow:%s\",\"title\":\"%s\",\"status\":%d,\"code\":\"%s\",\"room\":\"%s/\"}", code, title, status, code, setup.room);
    }
}
