// @ts-check
/** The event's page for somebody who is in its shop: the visit goes on while they read. */
import "./event.js";
import "./visit.js";
