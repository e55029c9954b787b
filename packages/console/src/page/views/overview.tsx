import { counted } from '@tenon/api/counted'
import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import { objectPath } from '../../model/object-ref.ts'
import type { PageNodeRow } from '../../model/page-view.ts'
import type { NextAction, Problem } from '../../model/view.ts'
import { priceText, sumText } from '../format.ts'
import { PauseButton } from '../parts/act.tsx'
import { useAnswer } from '../parts/answer.tsx'
import { ShareBar } from '../parts/bar.tsx'
import { Name } from '../parts/name.tsx'
import { NodeLink, ObjectLink, Sentence } from '../parts/object-link.tsx'
import { PricePlot } from '../parts/price-plot.tsx'
import { Start } from '../parts/start.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { Age, isOtherDay, When } from '../parts/when.tsx'
import { header, nowMs, problems, rowsOf, versionOf } from '../state/store.ts'

/** Costs, activity, and problems. */
export function OverviewView(): JSX.Element {
  const current = header.value
  if (current === undefined) return <></>
  const { currency = '', nodes, pendingNodes, pods, price, resources, tenon } = current
  return (
    <>
      <Problems />
      <Start />
      <div class="cards">
        <section class="card price" aria-label="Price now">
          <h2>Price now</h2>
          <p
            class="big"
            title={price.unpriced === 0 ? undefined : `${price.unpriced} without a known price, in no sum`}
          >
            <span data-test="price">{sumText(price.perHour, price.unpriced)}</span>{' '}
            <small>{currency} per hour</small>
          </p>
          <p>
            {priceText(price.perMonth, 2)} {currency} per month of 730 h
          </p>
          {price.unpriced > 0 && <p>?{price.unpriced}: so many have no known price, and are in no sum.</p>}
          <Savings />
        </section>
        <section class="card">
          <h2>Nodes</h2>
          <p class="big">
            {nodes} <small>{pendingNodes > 0 ? `and ${pendingNodes} starting` : 'running'}</small>
          </p>
          {Object.entries(resources)
            .filter(([name]) => ['cpu', 'memory'].includes(name))
            .map(([name, share]) => (
              <ShareBar key={name} resource={name} share={share} label={name === 'cpu' ? 'CPU' : 'Memory'} />
            ))}
        </section>
        <section class="card">
          <h2>Pods</h2>
          {pods === undefined ? (
            <p>Pods cannot be read.</p>
          ) : (
            <>
              <p class="big">
                {pods.pending} <small>pending</small>
              </p>
              <p>
                {pods.total} in all, {pods.bound} with a node, {pods.running} running
              </p>
              <p>
                <a href="/pods">Why pods wait</a>
              </p>
            </>
          )}
        </section>
        {tenon !== undefined && (
          <section class="card">
            <h2>Tenon</h2>
            <p>{tenon.paused === undefined ? 'Not paused' : `Paused: ${tenon.paused}`}</p>
            <p>
              {tenon.decisionsPerMinute} {tenon.decisionsPerMinute === 1 ? 'decision' : 'decisions'} in the
              last minute
            </p>
            <p>
              Next:{' '}
              {tenon.next === undefined ? (
                'nothing is planned'
              ) : (
                <>
                  <Next {...tenon.next} />
                  {tenon.next.at !== undefined && (
                    <>
                      , at <When at={tenon.next.at} withDate={isOtherDay(tenon.next.at)} />
                    </>
                  )}
                </>
              )}
            </p>
            <p class="buttons">
              <PauseButton />
            </p>
          </section>
        )}
      </div>
      <section>
        <h2>Price over time</h2>
        <PricePlot />
      </section>
      <Happening />
      <section>
        <h2>Nodes by NodePool and type</h2>
        <Kinds />
      </section>
    </>
  )
}

const links: Readonly<Record<Problem['kind'], string>> = {
  paused: '/pools',
  rolloutHalted: '/pools',
  offeringShort: '/pools',
  poolNotReady: '/pools',
  groupNotScaled: '/pools',
  nodeNotReady: '/map?filter=NotReady',
  podsPending: '/pods',
}

/** NodePools have a page; other problems concern several objects, which a view lists. */
function problemLink({ kind, object = '' }: Problem): string {
  const [noun, name = ''] = object.split('/')
  return noun === 'nodepool' ? objectPath({ kind: 'NodePool', name }) : links[kind]
}

function Problems(): JSX.Element | null {
  const all = problems.value
  if (all.length === 0) return null
  return (
    <section class="problems" aria-label="Problems">
      <h2>
        {all.length} {all.length === 1 ? 'problem' : 'problems'}
      </h2>
      <ul>
        {all.map((each) => (
          <li key={each.id}>
            <a href={problemLink(each)}>{each.text}</a>{' '}
            {each.since !== undefined && (
              <span class="quiet">
                for <Age since={each.since} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Day {
  readonly day: string
  readonly moves: number
  readonly saved: number
  readonly currency?: string
}

function Savings(): JSX.Element | null {
  const asked = useAnswer<{ readonly days: readonly Day[] } | { readonly absent: string }>(
    '/api/savings',
    versionOf('decisions'),
    10_000,
  )
  if (asked.kind !== 'answered') return null
  if ('absent' in asked.answer) return <p class="quiet">Savings are not known: {asked.answer.absent}</p>
  const { currency = '' } = header.value ?? {}
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  const week = dayOf(nowMs.value - 6 * 86_400_000)
  const [today, ofWeek] = [dayOf(nowMs.value), week].map((from) =>
    (asked.answer as { readonly days: readonly Day[] }).days
      .filter(({ day }) => day >= from)
      .reduce((sum, { saved }) => sum + saved, 0),
  )
  return (
    <p>
      Saved by moves: {priceText(today, 2)} {currency} today, {priceText(ofWeek, 2)} {currency} in 7 days
      (UTC)
    </p>
  )
}

/** The text begins with the name of the node. */
function Next({ node, text }: NextAction): JSX.Element {
  if (node === undefined || !text.startsWith(node)) return <>{text}</>
  return (
    <>
      <NodeLink name={node} />
      <Sentence text={text.slice(node.length)} />
    </>
  )
}

/** Limit of claims in progress, and of leaving nodes. */
const mostShown = 50

/** Claims in progress, and leaving nodes. */
function Happening(): JSX.Element {
  const claims = rowsOf('claims').filter(({ deleting, waitsFor }) => waitsFor !== undefined && !deleting)
  const leaving = rowsOf('nodes').filter(({ deleting }) => deleting)
  const more = [claims, leaving].reduce((sum, { length }) => sum + Math.max(0, length - mostShown), 0)
  return (
    <section>
      <h2>Happening now</h2>
      {claims.length + leaving.length === 0 && <p class="empty">Nothing is launched or removed.</p>}
      <ul class="happening">
        {claims.slice(0, mostShown).map((claim) => (
          <li key={claim.id}>
            <strong>
              <ObjectLink kind="NodeClaim" name={claim.name} />
            </strong>{' '}
            <Type name={claim.instanceType} />
            waits to be {claim.waitsFor}
            <Waited since={claim.waitsSince ?? claim.createdAt} />
            {claim.waitsMessage !== undefined && <span class="quiet"> · {claim.waitsMessage}</span>}
          </li>
        ))}
        {leaving.slice(0, mostShown).map((node) => (
          <li key={node.id}>
            <strong>
              <NodeLink name={node.name} />
            </strong>{' '}
            <Type name={node.instanceType} />
            is removed
            {node.pods !== undefined && `, with ${counted(node.pods, 'pod')} on it`}
          </li>
        ))}
      </ul>
      {more > 0 && (
        <p>
          And {more} more: <a href="/map?as=table">all nodes</a>
        </p>
      )}
    </section>
  )
}

/** Renders nothing for a claim without a type. */
function Type({ name }: { readonly name: string | undefined }): JSX.Element | null {
  if (name === undefined) return null
  return (
    <>
      <Name name={name} />{' '}
    </>
  )
}

/** Renders nothing for a claim without a transition time. */
function Waited({ since }: { readonly since: string | undefined }): JSX.Element | null {
  if (since === undefined) return null
  return (
    <>
      , for <Age since={since} />
    </>
  )
}

interface Kind {
  readonly id: string
  readonly nodePool: string
  readonly type: string
  readonly nodes: number
  readonly perHour: number | undefined
  readonly unpriced: number
}

const kindColumns: readonly Column<Kind>[] = [
  {
    title: 'NodePool',
    cell: ({ nodePool }) => <ObjectLink kind="NodePool" name={nodePool === '-' ? undefined : nodePool} />,
    order: (kind) => kind.nodePool,
  },
  { title: 'Type', cell: (kind) => <Name name={kind.type} />, order: (kind) => kind.type },
  { title: 'Nodes', cell: (kind) => kind.nodes, order: (kind) => kind.nodes, isNumber: true },
  {
    title: 'Price/hour',
    cell: (kind) => sumText(kind.perHour, kind.unpriced),
    order: (kind) => kind.perHour,
    isNumber: true,
  },
]

function Kinds(): JSX.Element {
  const version = versionOf('nodes')
  const kinds = useMemo(() => kindsOf(rowsOf('nodes')), [version])
  return (
    <Table
      caption="Nodes by NodePool and type"
      columns={kindColumns}
      rows={kinds}
      rowKey={({ id }) => id}
      first={{ title: 'Price/hour', isDown: true }}
      empty="There are no nodes."
    />
  )
}

function kindsOf(rows: readonly PageNodeRow[]): readonly Kind[] {
  const groups = Map.groupBy(rows, (row) => `${row.nodePool ?? '-'}\n${row.instanceType ?? '?'}`)
  return Array.from(groups, ([id, members]) => {
    const { instanceType: type = '?', nodePool = '-' } = members[0] ?? {}
    const prices = members.flatMap(({ pricePerHour }) => (pricePerHour === undefined ? [] : [pricePerHour]))
    return {
      id,
      nodePool,
      type,
      nodes: members.length,
      perHour: prices.length === 0 ? undefined : prices.reduce((sum, price) => sum + price, 0),
      unpriced: members.length - prices.length,
    }
  })
}
