import { counted } from '@tenon/api/counted'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { JSX } from 'preact'
import { ageText } from './format.ts'
import { objectPath, objectText } from '../model/object-ref.ts'
import { ActionDialog } from './parts/act.tsx'
import { Awaited } from './parts/answer.tsx'
import { SearchButton, SearchDialog } from './parts/search.tsx'
import { offeredViews } from './state/offered.ts'
import { objectView, path, shownObject, startRouter, views } from './state/router.ts'
import { startShowing } from './state/shown-children.ts'
import { absences, header, nowMs, tick, user } from './state/store.ts'
import { arrivedRows, connection, cutBecause, cutSinceMs, startStream } from './state/stream.ts'
import { CostView } from './views/cost.tsx'
import { DecisionsView } from './views/decisions.tsx'
import { MapView } from './views/map.tsx'
import { NoObject, ObjectView } from './views/object.tsx'
import { OverviewView } from './views/overview.tsx'
import { PendingView } from './views/pending.tsx'
import { PoolsView } from './views/pools.tsx'
import { ReplayView } from './views/replay.tsx'
import { WhatIfView } from './views/what-if.tsx'
import 'uplot/dist/uPlot.min.css'
import './style.css'

const shown: Readonly<Record<string, () => JSX.Element>> = {
  '/': OverviewView,
  '/map': MapView,
  '/pods': PendingView,
  '/pools': PoolsView,
  '/decisions': DecisionsView,
  '/what-if': WhatIfView,
  '/cost': CostView,
  '/replay': ReplayView,
  [objectView]: NoObject,
}

function Page(): JSX.Element {
  const object = shownObject.value
  const title =
    object === undefined
      ? (views.find((view) => view.path === path.value)?.title ?? 'Not found')
      : objectText(object)
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${title} · Tenon`
    // Moves the focus to the new view, for users of keyboards and screen readers.
    if (isFirst.current) isFirst.current = false
    else main.current?.focus({ preventScroll: true })
  }, [title])
  return (
    <>
      <a class="skip" href="#main">
        Skip to the view
      </a>
      <header class="top">
        <a class="brand" href="/">
          Tenon
        </a>
        <nav aria-label="Views">
          <ul>
            {offeredViews.value.map((view) => (
              <li key={view.path}>
                <a href={view.path} {...(view.path === path.value && { 'aria-current': 'page' as const })}>
                  {view.title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {user.value !== undefined && (
          <span class="user" title={`What this user may see: ${user.value}`}>
            {user.value}
          </span>
        )}
        <SearchButton />
      </header>
      <Notices />
      <main id="main" ref={main} tabIndex={-1}>
        <h1>{title}</h1>
        <Shown />
      </main>
      <Absences />
      <SearchDialog />
      <ActionDialog />
    </>
  )
}

/** Before the first picture, a view would show an empty cluster. */
function Shown(): JSX.Element {
  const object = shownObject.value
  const View = Object.hasOwn(shown, path.value) ? shown[path.value] : undefined
  if (View === undefined) return <p>There is no such view. Choose one above.</p>
  if (header.value === undefined)
    return (
      <Awaited
        what="the first picture of the cluster"
        {...(arrivedRows.value > 0 && { soFar: `${counted(arrivedRows.value, 'object')} so far` })}
      />
    )
  if (object !== undefined) return <ObjectView key={objectPath(object)} of={object} />
  return <View key={path.value} />
}

/** Problems of the connection. */
function Notices(): JSX.Element | null {
  const { staleSince } = header.value ?? {}
  if (connection.value === 'expired')
    return (
      <p class="notice" role="alert">
        {cutBecause.value ??
          'The command that served this page has ended, or does not know this browser. Open the link that it prints.'}
      </p>
    )
  if (connection.value === 'cut' && cutSinceMs.value !== undefined)
    return (
      <p class="notice" role="status">
        {cutBecause.value ?? 'The command does not answer'}; the picture is{' '}
        {header.value === undefined ? 'not there yet' : `${ageText(cutSinceMs.value, tick.value)} old`}.
      </p>
    )
  if (staleSince !== undefined)
    return (
      <p class="notice" role="status">
        The cluster does not answer; the picture is {ageText(Date.parse(staleSince), nowMs.value)} old.
      </p>
    )
  return null
}

/** What is not shown, and why. */
function Absences(): JSX.Element | null {
  if (absences.value.length === 0) return null
  return (
    <footer>
      <details>
        <summary>Not shown: {absences.value.map(({ what }) => what).join(', ')}</summary>
        <ul>
          {absences.value.map(({ what, why }) => (
            <li key={what}>
              {what}: {why}
            </li>
          ))}
        </ul>
      </details>
    </footer>
  )
}

startShowing()
startRouter()
startStream()
const root = document.querySelector('#page') as HTMLElement
// What stood there while the script was loaded.
root.replaceChildren()
render(<Page />, root)
