// The plan editor's own modules on Node, for tests/web/site/test_plan_editor.py: what must hold of its geometry, and what
// it would save after some steps. JSON in on stdin (plan documents by name), JSON out.
import assert from "node:assert/strict";
import * as geometry from "../../src/frontrow/web/static/js/organiser/arrange/geometry.js";
import * as drafts from "../../src/frontrow/web/static/js/organiser/arrange/draft.js";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const { plans } = JSON.parse(text);
let seed = 7;
const random = (low, high) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return low + ((high - low) * seed) / 2147483648;
};
const near = (one, other, by = 0.03) => {
  assert.equal(one.length, other.length);
  one.forEach((value, at) => assert.ok(Math.abs(value - other[at]) <= by, `${value} is not ${other[at]} (${at})`));
};
const gaps = (points) =>
  points
    .slice(2)
    .flatMap((_, at) => (at % 2 ? [] : [Math.hypot(points[at + 2] - points[at], points[at + 3] - points[at + 1])]));
const row = (seats, turn = 0) => {
  const points = Array.from({ length: seats }, (_, seat) => [100 + 9 * seat, 200]).flat();
  return geometry.rotatePoints(points, 100, 200, turn);
};
const some = () => row(3 + Math.floor(random(0, 40)), random(-180, 180));
const times = (act) => Array.from({ length: 60 }, act);

const holds = {
  "a move back is where it was": () =>
    times(() => {
      const points = some(),
        [dx, dy] = [geometry.round(random(-90, 90)), geometry.round(random(-90, 90))];
      near(geometry.movePoints(geometry.movePoints(points, dx, dy), -dx, -dy), points, 0.011);
    }),
  "a turn keeps distances, a full circle of turns everything": () =>
    times(() => {
      const points = some(),
        [cx, cy] = [random(0, 300), random(0, 300)];
      near(gaps(geometry.rotatePoints(points, cx, cy, random(-360, 360))), gaps(points));
      near(geometry.rotatePoints(geometry.rotatePoints(points, cx, cy, 90), cx, cy, -90), points, 0.02);
    }),
  "a bend keeps the distances of neighbours, the middle of the ends and their direction": () =>
    times(() => {
      const points = some(),
        degrees = random(-170, 170),
        bent = geometry.bendPoints(points, degrees),
        ends = (list) => [list[0], list[1], list.at(-2), list.at(-1)],
        [a, b, c, d] = ends(points),
        [e, f, g, h] = ends(bent);
      near(gaps(bent), gaps(points));
      near([(a + c) / 2, (b + d) / 2], [(e + g) / 2, (f + h) / 2]);
      near(geometry.directionOf(points), geometry.directionOf(bent), 0.002);
      assert.ok(Math.abs(geometry.bendOf(bent) - degrees) < 0.8, `${geometry.bendOf(bent)} is not ${degrees}`);
    }),
  "a bend back is where it was, and a positive one hangs down": () => {
    times(() => {
      const points = some();
      near(geometry.bendPoints(geometry.bendPoints(points, random(-170, 170)), 0), points, 0.06);
    });
    const bent = geometry.bendPoints(row(9), 40);
    assert.ok(bent[9] > bent[1] + 2, "the middle is below the ends");
    assert.deepEqual(geometry.bendPoints(row(2), 40), row(2));
    near([geometry.bendOf(geometry.bendPoints(row(9), 900))], [180], 0.8);
  },
  "a snapped move ends on the grid, and no move stays none": () =>
    times(() => {
      const anchor = [geometry.round(random(-50, 500)), geometry.round(random(-50, 500))],
        [dx, dy] = geometry.snapMove(anchor, random(1, 80), random(-80, -1), 5);
      for (const [value, by] of [
        [anchor[0], dx],
        [anchor[1], dy]
      ])
        near([geometry.snapTo(value + by, 5)], [value + by], 0.006);
      assert.deepEqual(geometry.snapMove(anchor, 0, 0, 5), [0, 0]);
    }),
  "what is not chosen is the same object": () => {
    const first = drafts.draftOf(plans.theatre),
      one = drafts.moveChosen(first, new Set(["s0/r1", "s1/r0/2"]), 10, 5);
    assert.equal(one.sections[2], first.sections[2]);
    assert.equal(one.sections[0].rows[0], first.sections[0].rows[0]);
    const [was, is] = [first.sections[1].rows[0].points, one.sections[1].rows[0].points];
    assert.deepEqual(is.slice(0, 4), was.slice(0, 4));
    near(is.slice(4, 6), [was[4] + 10, was[5] + 5], 0.011);
  },
  "nothing leaves the plan at the left or the top": () => {
    const first = drafts.draftOf(plans.arena),
      all = new Set(first.sections.map((section) => section.key)),
      least = (draft) => geometry.boundsOf(drafts.chosenPoints(draft, all)).slice(0, 2);
    near(least(drafts.moveChosen(first, all, ...drafts.withinPlan(first, all, -9e5, -9e5))), [0, 0], 0.02);
    for (const degrees of [30, 90, 200])
      assert.ok(least(drafts.rotateChosen(first, all, degrees)).every((value) => value >= -0.02));
  },
  "undo and redo walk through the steps, and a new step ends the way back": () => {
    const first = drafts.draftOf(plans.theatre),
      history = new drafts.History(first),
      chosen = new Set(["s0"]);
    const steps = [1, 2, 3].map(() => {
      history.add(drafts.moveChosen(history.now, chosen, 5, 0));
      return history.now;
    });
    history.undo();
    history.undo();
    assert.equal(history.now, steps[0]);
    history.redo();
    assert.equal(history.now, steps[1]);
    history.add(first);
    assert.equal(history.canRedo, false);
    for (let n = 0; n < drafts.MAX_STEPS + 50; n++) history.add({ sections: [] });
    let back = 0;
    while (history.canUndo && back < 1000) {
      history.undo();
      back++;
    }
    assert.equal(back, drafts.MAX_STEPS - 1);
  },
  "copies get free labels, doubled ones are found": () => {
    const first = drafts.draftOf(plans.theatre),
      rows = drafts.duplicateChosen(first, new Set(["s0/r0", "s0/r1"])),
      last = first.sections[0].rows.length;
    assert.deepEqual(
      rows.draft.sections[0].rows.slice(last).map((each) => each.id),
      ["A", "B"].map((_, n) => String.fromCharCode(65 + last + n))
    );
    const both = drafts.duplicateChosen(drafts.duplicateChosen(first, new Set(["s1"])).draft, new Set(["s1"]));
    assert.deepEqual(
      both.draft.sections.map((each) => each.id),
      ["Stalls", "Circle", "Balcony", "Circle.2", "Circle.3"]
    );
    assert.deepEqual(drafts.findDoubled(both.draft), []);
    assert.deepEqual(drafts.findDoubled(drafts.renamed(both.draft, "s4", "Stalls")), ["s4"]);
    assert.deepEqual(drafts.findDoubled(drafts.renamed(first, "s0/r1", "A")), ["s0/r1"]);
    assert.equal(drafts.removeChosen(first, new Set(["s0", "s1", "s2"])), null);
    assert.equal(
      drafts.removeChosen(first, new Set(first.sections[2].rows.map((each) => each.key))).sections.length,
      2
    );
    assert.deepEqual([...drafts.keysOf(first, ["Circle-B-3"])], ["s1/r1/2"]);
  }
};

const wrong = {};
for (const [what, check] of Object.entries(holds))
  try {
    check();
  } catch (error) {
    wrong[what] = String(error);
  }

/** Everything that can be done, and where seats are then. */
const saved = {};
for (const [name, doc] of Object.entries(plans)) {
  const first = drafts.draftOf(doc);
  let draft = drafts.moveChosen(first, new Set(["s0"]), 3000, 12.5);
  draft = drafts.bendChosen(draft, new Set(["s0/r0"]), 20);
  draft = drafts.rotateChosen(draft, new Set(["s1"]), 45);
  draft = drafts.moveChosen(draft, new Set(["s1"]), 0, 4000);
  const copied = drafts.duplicateChosen(draft, new Set(["s1", "s0/r1"]));
  draft = drafts.moveChosen(copied.draft, copied.chosen, 7000, 0);
  const placed = drafts.toArrangement(first, draft),
    again = drafts.fromArrangement(first, JSON.parse(JSON.stringify(placed)));
  if (JSON.stringify(drafts.toArrangement(first, again)) !== JSON.stringify(placed)) wrong[`${name} kept`] = "differs";
  const places = {};
  for (const section of draft.sections)
    for (const each of section.rows)
      each.numbers.forEach((number, seat) => {
        places[`${section.id}-${each.id}-${number}`] = each.points.slice(2 * seat, 2 * seat + 2);
      });
  saved[name] = { untouched: drafts.toArrangement(first, first), placed, places };
}
const other = drafts.fromArrangement(drafts.draftOf(plans.arena), saved.theatre.placed);
if (other !== null) wrong["another plan"] = "an arrangement of another plan was taken";
console.log(JSON.stringify({ checked: Object.keys(holds).length, wrong, saved }));
