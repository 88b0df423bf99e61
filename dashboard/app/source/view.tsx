// One source: its name, its tabs, and the live reading that they share.

import { hrefOf, SOURCES_HREF, TABS, type Tab } from "../route";
import { span } from "../format";
import { Notice } from "../ui/notice";
import { Access } from "./access";
import { Learning } from "./learning";
import { Log } from "./log";
import { Overview } from "./overview";
import { SettingsTab } from "./settings";
import { useLive, type Live } from "./use-live";

export interface TabProps {
  name: string;
  live: Live;
}

const VIEWS = { overview: Overview, access: Access, learning: Learning, log: Log, settings: SettingsTab };

export function SourceView({ name, tab }: { name: string; tab: Tab }) {
  const live = useLive(name);
  const View = VIEWS[tab];
  return (
    <section class="page">
      <p class="crumbs"><a href={SOURCES_HREF}>Sources</a></p>
      <h1 class="name">{name}</h1>
      <nav class="tabs" aria-label="Source">
        {TABS.map((one) => <a key={one} href={hrefOf(name, one)} aria-current={one === tab ? "page" : undefined}>{one}</a>)}
      </nav>
      {live.problem && !live.gone && <Trouble live={live} />}
      {live.gone ? (
        <p class="empty">There is no source of this name{live.source ? " any more: it was deleted" : ""}. <a href={SOURCES_HREF}>See all sources</a>.</p>
      ) : live.source ? (
        <View name={name} live={live} />
      ) : !live.problem && <p class="empty">Reading …</p>}
    </section>
  );
}

function Trouble({ live }: { live: Live }) {
  const cause = live.problem.replace(/\.$/, "");
  return (
    <div class="trouble">
      <Notice kind="warn">
        {live.source
          ? <>{cause}; showing the state of <span class="steady" aria-live="off">{span(live.ageMs)}</span> ago. It is tried again every few seconds.</>
          : <>{cause}. It is tried again every few seconds.</>}
      </Notice>
    </div>
  );
}
