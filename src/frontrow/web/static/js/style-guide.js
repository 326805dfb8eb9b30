// @ts-check
/** The style guide shows the living parts too. */
import { $ } from "./dom.js";
import "./timer.js";

$("#open-dialog").addEventListener("click", () => /** @type {HTMLDialogElement} */ ($("#dialog")).showModal());
$("#close-dialog").addEventListener("click", () => /** @type {HTMLDialogElement} */ ($("#dialog")).close());
$("fr-timer").setAttribute("until", new Date(Date.now() + 480_000).toISOString());
