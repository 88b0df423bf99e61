// The entry: mounts the page. Everything it shows comes from the API of the host it was loaded from.

import { render } from "preact";
import { App } from "./app";
import "./style/base.css";
import "./style/frame.css";
import "./style/parts.css";
import "./style/source.css";

const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
