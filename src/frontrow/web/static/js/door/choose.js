// @ts-check
/** The list of events at the door: works without a line from its second visit on, and can be installed. */
import { $ } from "../dom.js";
import { keepOffline, offerInstall } from "./install.js";

offerInstall($("#install"));
keepOffline();
