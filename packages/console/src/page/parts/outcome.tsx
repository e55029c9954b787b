import type { Simulation } from '@tenon/ask'
import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import type { PlayedAnswer, WhatIfAnswer } from '../../answers/simulate.ts'
import { priceText, sumText } from '../format.ts'
import { fleetAfter } from '../state/fleet.ts'
import { rowsOf } from '../state/store.ts'
import { Command } from './copy.tsx'
import { Fleet } from './fleet.tsx'
import { StepPlot } from './plot.tsx'

/** What would come of a change: beside now in figures, on nodes and in the words of `tenon simulate`. */
export function Outcome({ answer }: { readonly answer: WhatIfAnswer }): JSX.Element {
  if (answer.kind === 'problems')
    return (
      <ul class="failure">
        {answer.problems.map((problem) => (
          <li key={problem.message}>
            {problem.line}:{problem.column} {problem.message}
          </li>
        ))}
      </ul>
    )
  const { command, played, simulation, text } = answer
  const { priceAfter, priceBefore, priceUnit = '' } = simulation
  const isKnown = priceBefore.unpriced + priceAfter.unpriced === 0
  const perHour = priceAfter.pricePerHour - priceBefore.pricePerHour
  return (
    <>
      <dl class="figures">
        <dt>Price per hour</dt>
        <dd>
          {sumText(priceBefore.pricePerHour, priceBefore.unpriced)} →{' '}
          {sumText(priceAfter.pricePerHour, priceAfter.unpriced)} {priceUnit}
        </dd>
        <dt>Change per month of 730 h</dt>
        <dd>
          {isKnown ? `${perHour < 0 ? '−' : '+'}${priceText(Math.abs(perHour) * 730, 2)} ${priceUnit}` : '?'}
        </dd>
        <dt>Pods that would move to other nodes</dt>
        <dd>{simulation.podsThatMove.length}</dd>
        <dt>Pending and new pods that would run</dt>
        <dd>{simulation.podsThatRun.length}</dd>
        <dt>Pods that would wait</dt>
        <dd>{simulation.podsThatWait.length}</dd>
        <dt>Nodes that would be replaced</dt>
        <dd>{simulation.nodes.drifted.length}</dd>
      </dl>
      <Command text={command} what="as command" />
      <Fleets simulation={simulation} />
      <pre class="simulated" tabIndex={0} aria-label="What tenon simulate prints">
        {text}
      </pre>
      {played !== undefined && <Played {...played} unit={priceUnit} />}
    </>
  )
}

function Fleets({ simulation }: { readonly simulation: Simulation }): JSX.Element {
  const rows = rowsOf('nodes')
  const { after, before } = useMemo(() => fleetAfter(rows, simulation.nodes), [simulation])
  return (
    <div class="two">
      <Fleet title="Now" nodes={before} />
      <Fleet title="Then" nodes={after} />
    </div>
  )
}

function Played({
  after,
  before,
  unit,
}: {
  readonly after: PlayedAnswer
  readonly before: PlayedAnswer
  readonly unit: string
}): JSX.Element {
  const lines = [
    { label: 'As it is', played: before },
    { label: 'Changed', played: after },
  ].map(({ label, played: { hours } }) => ({
    label,
    points: hours.map(({ cost, startMs }) => ({ atMs: startMs, value: cost })),
  }))
  const [fromMs, toMs] = [before.hours[0]?.startMs ?? 0, (before.hours.at(-1)?.startMs ?? 0) + 3_600_000]
  const rows = [
    ['Price', ({ cost }: PlayedAnswer) => `${cost.toFixed(2)} ${unit}`],
    ['Peak price per hour', ({ peakPricePerHour }: PlayedAnswer) => priceText(peakPricePerHour)],
    ['Nodes at the end', ({ nodes }: PlayedAnswer) => String(nodes)],
    ['Launches', ({ launches }: PlayedAnswer) => String(launches)],
    ['Moves', ({ moves }: PlayedAnswer) => String(moves)],
  ] as const
  return (
    <>
      <h3>Over 24 hours</h3>
      <StepPlot lines={lines} fromMs={fromMs} toMs={toMs} unit={unit} what="price of an hour" />
      <div class="scroller" role="region" aria-label="Over 24 hours" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">In 24 h</th>
              <th scope="col" class="number">
                As it is
              </th>
              <th scope="col" class="number">
                Changed
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([title, of]) => (
              <tr key={title}>
                <th scope="row">{title}</th>
                <td class="number">{of(before)}</td>
                <td class="number">{of(after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}
