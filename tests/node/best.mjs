// The seat map's own choice of seats on Node, for tests/boxoffice/seats/test_best_seats_in_pages.py. JSON in on stdin (cases),
// JSON out: what is proposed for each wish, which seats each choice leaves alone, and the way out.
import { BestSeats } from "../../src/frontrow/web/static/js/seatmap/best.js";
import { SeatModel } from "../../src/frontrow/web/static/js/seatmap/model.js";

let text = "";
for await (const chunk of process.stdin) text += chunk;
const answers = JSON.parse(text).map(({ doc, order, ranks, states, held, wishes, choices }) => {
  const model = new SeatModel(doc),
    best = new BestSeats(model, order, ranks),
    own = new Set(held);
  model.state.set(states);
  model.recount();
  return {
    found: wishes.map((wish) => best.find({ ...wish, maxPrice: wish.maxPrice ?? Infinity }, own)),
    choices: choices.map((choice) => {
      const alone = best.alone(new Set(choice), own).sort((a, b) => a - b);
      return { alone, moved: alone.length ? best.moved(alone[0], new Set(choice), own) : null };
    })
  };
});
console.log(JSON.stringify(answers));
