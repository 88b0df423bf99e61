// The frame: who is signed in, which view is shown, and what stands around it.

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { SOURCES_HREF, useRoute, type Route } from "./route";
import { signOut, useSession } from "./session";
import { SignIn } from "./sign-in";
import { CreateSource } from "./sources/create";
import { Sources } from "./sources/list";
import { SourceView } from "./source/view";

export function App() {
  const session = useSession();
  const main = useRef<HTMLElement>(null);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>Skip to the content</button>
      <header class="bar">
        <a class="brand" href={SOURCES_HREF}>swarmvia <b>locks</b></a>
        <nav aria-label="Main">
          {session.token !== null && <a href={SOURCES_HREF}>Sources</a>}
          <a href="/docs">API docs</a>
        </nav>
        <span class="host" title="The API host of this page">{location.host}</span>
        {session.token !== null && <button type="button" class="quiet" onClick={() => signOut()}>Sign out</button>}
      </header>
      <main ref={main} tabIndex={-1}>
        {session.token === null ? <SignIn refused={session.refused} /> : <View main={main} />}
      </main>
    </>
  );
}

function View({ main }: { main: RefObject<HTMLElement | null> }) {
  const route = useRoute();
  const place = route.view === "source" ? `source ${route.source}` : route.view;
  const before = useRef(place);
  // In another view the reader begins anew, at its top or in its first field.
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    scrollTo(0, 0);
    (main.current?.querySelector<HTMLElement>("[autofocus]") ?? main.current)?.focus();
  }, [place]);
  useEffect(() => {
    document.title = titleOf(route);
  }, [titleOf(route)]);
  switch (route.view) {
    case "sources": return <Sources />;
    case "new": return <CreateSource />;
    case "source": return <SourceView key={route.source} name={route.source} tab={route.tab} />;
    case "unknown": return (
      <section class="page narrow">
        <h1>There is nothing here</h1>
        <p>The address names no view of this dashboard. <a href={SOURCES_HREF}>See all sources</a>.</p>
      </section>
    );
  }
}

function titleOf(route: Route) {
  if (route.view === "source") return `${route.source} · ${route.tab} · swarmvia locks`;
  return route.view === "new" ? "New source · swarmvia locks" : "Sources · swarmvia locks";
}
