// The connector for Node: Express, Connect, or `http.createServer`. Put it before everything else:
//   app.use(frontrow({ room: "https://room.example/v1/events/aurora/room", event: "aurora", shop: "https://shop.example", open_paths: ["/static/"] }))
// `rules_key`: a key of the room's console for rules:read. Behind a proxy `options.address(req)` says who the client is.
// A request that gets through has `req.frontrow` ({person, visit}).
import { Connector, answerOf } from "./frontrow.mjs";

export function frontrow(setup, options) {
  const connector = new Connector(setup, options);
  return async (req, res, next) => {
    let answer;
    try {
      const done = await connector.handle(req.method, req.originalUrl ?? req.url, req.headers, options?.address?.(req) ?? req.socket?.remoteAddress);
      answer = answerOf(done, connector.setup);
      if (!answer) {
        req.frontrow = { person: done.person, visit: done.visit };
        for (const line of done.cookies ?? []) res.appendHeader("set-cookie", line);
      }
    } catch (error) {
      return next(error); // closed, never open by accident
    }
    if (!answer) return next();
    res.statusCode = answer.status;
    for (const [name, value] of answer.headers) res.appendHeader(name, value);
    res.end(req.method === "HEAD" || answer.body === null ? undefined : answer.body);
  };
}
