import { counted } from '@tenon/api/counted'
import { useMemo, useRef } from 'preact/hooks'
import { type ComponentChildren, Fragment, type JSX } from 'preact'
import type { ObjectAnswer, ObjectEvent, ShownCondition, ShownObject } from '../../answers/object.ts'
import { objectQuery, type ObjectRef, objectText } from '../../model/object-ref.ts'
import type { PageNodeRow } from '../../model/page-view.ts'
import type { Relations } from '../../model/relations.ts'
import type { DecisionRow, PodOnNode } from '../../model/view.ts'
import { amountText, priceText } from '../format.ts'
import { PauseButton } from '../parts/act.tsx'
import { type Asked, Awaited, useAnswer } from '../parts/answer.tsx'
import { CopyButton } from '../parts/copy.tsx'
import { Explanation } from '../parts/explanation.tsx'
import { Name } from '../parts/name.tsx'
import { NodeActions } from '../parts/node-actions.tsx'
import { factsOf, NodeTable } from '../parts/node-table.tsx'
import { NodeLink, ObjectLink, OwnerLink, PodLink, Sentence } from '../parts/object-link.tsx'
import { Scale, scaledKinds } from '../parts/scale.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { Age, When } from '../parts/when.tsx'
import { absences, header, nodeRowOf, nowMs, rowOf, rowsOf, versionOf } from '../state/store.ts'

const againMs = 5000

/** One object: what it is, what it belongs to, and what was decided about it (page.md 2). */
export function ObjectView({ of: ref }: { readonly of: ObjectRef }): JSX.Element {
  const asked = useAnswer<ObjectAnswer>(`/api/object?${objectQuery(ref)}`, Math.floor(nowMs.value / againMs))
  const { answer, notice } = useLast(ref, asked)
  const { object, relations = {}, events, pods } = answer ?? {}
  const read = object?.kind === 'read' ? object : undefined
  const row = rowFor(ref)
  return (
    <>
      {asked.kind === 'waiting' && <Awaited what={objectText(ref)} />}
      {notice !== undefined && (
        <p class="failure" role="status">
          {notice}
        </p>
      )}
      <Chain of={ref} relations={relations} pods={pods?.all} />
      {row !== undefined && (
        <p>
          {factsOf(row)} · {priceText(row.pricePerHour)} {header.value?.currency ?? ''} per hour
        </p>
      )}
      {object?.kind === 'unread' && (
        <p class="failure">
          {objectText(ref)} is not shown in full: {object.why}.
        </p>
      )}
      {read && <Facts object={read} />}
      <Buttons of={ref} row={row} />
      <Said of={ref} row={row} />
      {read && <Conditions conditions={read.conditions} />}
      {ref.kind === 'NodePool' && <PoolNodes name={ref.name} />}
      {pods && <PodsOf of={ref} pods={pods} />}
      <Decisions of={ref} relations={relations} />
      {events && <Events events={events} />}
      {read && <Labels object={read} />}
      {read && <Yaml text={read.yaml} />}
    </>
  )
}

function PodsOf({
  of: ref,
  pods,
}: {
  readonly of: ObjectRef
  readonly pods: NonNullable<ObjectAnswer['pods']>
}): JSX.Element {
  return (
    <>
      <Pods {...pods} ofNode={ref.kind === 'Node'} />
      {scaledKinds.has(ref.kind) && <Scale of={ref} pods={pods.all} />}
    </>
  )
}

function Buttons({
  of: { kind, name },
  row,
}: {
  readonly of: ObjectRef
  readonly row: PageNodeRow | undefined
}): JSX.Element {
  return (
    <p class="buttons">
      <NodeActions row={row} />
      {kind === 'NodePool' && (
        <>
          <a class="button" href={`/pools?filter=${encodeURIComponent(name)}`}>
            Budgets and offerings
          </a>
          <a class="button" href={`/what-if?nodepool=${encodeURIComponent(name)}`}>
            What if it changed?
          </a>
          <PauseButton nodePool={name} />
        </>
      )}
    </p>
  )
}

/** The last answer stays while the object is gone, or an answer fails. */
function useLast(
  ref: ObjectRef,
  asked: Asked<ObjectAnswer>,
): { readonly answer?: ObjectAnswer; readonly notice?: string } {
  const last = useRef<ObjectAnswer>(undefined)
  const before = last.current === undefined ? '' : ' What follows was true before.'
  if (asked.kind === 'failed')
    return {
      notice: `Not answered (${asked.message}).${before}`,
      ...(last.current !== undefined && { answer: last.current }),
    }
  if (asked.kind !== 'answered') return {}
  const { answer } = asked
  if (answer.object.kind !== 'gone') {
    last.current = answer
    return { answer }
  }
  // Its events are told for a while after it is gone.
  const { events } = answer
  return {
    answer: last.current === undefined ? answer : { ...last.current, events },
    notice: `${objectText(ref)} is not there${last.current === undefined ? '.' : ` any more.${before}`}`,
  }
}

function rowFor({ kind, name }: ObjectRef): PageNodeRow | undefined {
  if (kind === 'Node') return nodeRowOf(name)
  return kind === 'NodeClaim' ? rowOf('nodes', `claim/${name}`) : undefined
}

/** From the class to the pods, with this object in its place. */
function Chain({
  of: ref,
  relations,
  pods,
}: {
  readonly of: ObjectRef
  readonly relations: Relations
  readonly pods: number | undefined
}): JSX.Element | null {
  const { node, nodeClaim, nodeClass, nodePool, nodePools = [], owners = [] } = relations
  const planned =
    ref.kind === 'Pod' ? rowOf('pendingPods', `${ref.namespace ?? ''}/${ref.name}`)?.plannedFor : undefined
  const before = [nodeClass, nodePool, nodeClaim, ...owners.toReversed()].filter((each) => each !== undefined)
  const steps: (readonly [title: string, content: ComponentChildren])[] = [
    ...before.map((each) => [each.kind, <ObjectLink {...each} most={60} />] as const),
    [ref.kind, <strong>this</strong>],
  ]
  if (node !== undefined) steps.push(['Node', <ObjectLink {...node} most={60} />])
  if (planned !== undefined) steps.push(['Planned for', <NodeLink name={planned} most={60} />])
  if (nodePools.length > 0)
    steps.push([
      'NodePools',
      nodePools.slice(0, 20).map((each, at) => (
        <span key={each.name}>
          {at > 0 && ', '}
          <ObjectLink {...each} most={60} />
        </span>
      )),
    ])
  if (nodePools.length > 20) steps.push(['', `and ${nodePools.length - 20} more NodePools`])
  if (ref.kind === 'NodePool') steps.push(['', <a href="#object-nodes">its nodes</a>])
  if (pods !== undefined && unlistedPods() === undefined)
    steps.push(['', <a href="#object-pods">{counted(pods, 'pod')}</a>])
  if (steps.length === 1) return null
  return (
    <nav class="chain" aria-label="What it belongs to">
      <ul>
        {steps.map(([title, content], at) => (
          <li key={at}>
            <span class="quiet">{title}</span> {content}
          </li>
        ))}
      </ul>
    </nav>
  )
}

function Facts({ object }: { readonly object: ShownObject }): JSX.Element {
  const { createdAt, deletingSince, facts, startupTaints, taints } = object
  const lines: (readonly [string, ComponentChildren])[] = [
    ...facts.map(([title, value]) => [title, <Name name={value} most={120} />] as const),
    ...[['Taints', taints] as const, ['Startup taints', startupTaints] as const].flatMap(([title, all]) =>
      all.length === 0
        ? []
        : [
            [
              title,
              all.map((taint) => (
                <div key={taint}>
                  <code class="long">{taint}</code>
                </div>
              )),
            ] as const,
          ],
    ),
  ]
  return (
    <dl class="figures object-facts">
      {createdAt !== undefined && (
        <>
          <dt>Created</dt>
          <dd>
            <When at={createdAt} withDate /> (<Age since={createdAt} /> ago)
          </dd>
        </>
      )}
      {deletingSince !== undefined && (
        <>
          <dt>Being deleted</dt>
          <dd class="failure">
            since <When at={deletingSince} withDate />
          </dd>
        </>
      )}
      {lines.map(([title, content]) => (
        <Fragment key={title}>
          <dt>{title}</dt>
          <dd>{content}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

/** What `tenon explain` says. */
function Said({
  of: { kind, name, namespace },
  row,
}: {
  readonly of: ObjectRef
  readonly row: PageNodeRow | undefined
}): JSX.Element | null {
  const asked =
    kind === 'Node' || kind === 'NodeClaim'
      ? { kind: 'node' as const, name: row?.nodeClaim ?? name }
      : kind === 'NodePool'
        ? { kind: 'nodepool' as const, name }
        : kind === 'Pod'
          ? { kind: 'pod' as const, name, namespace: namespace ?? 'default' }
          : undefined
  if (asked === undefined) return null
  return (
    <section class="card">
      <h2>As tenon explain says</h2>
      <Explanation {...asked} version={(row?.pods ?? 0) + Number(row?.deleting ?? false)} />
    </section>
  )
}

const conditionColumns: readonly Column<ShownCondition>[] = [
  { title: 'Condition', cell: ({ type }) => <Name name={type} most={60} />, order: ({ type }) => type },
  { title: 'Status', cell: ({ status }) => status, order: ({ status }) => status },
  { title: 'Since', cell: ({ since }) => <Age since={since} />, order: ({ since }) => since },
  { title: 'Reason', cell: ({ reason }) => <Name name={reason} most={60} />, order: ({ reason }) => reason },
  { title: 'Message', cell: ({ message }) => <Sentence text={message} />, isText: true },
]

function Conditions({ conditions }: { readonly conditions: readonly ShownCondition[] }): JSX.Element {
  return (
    <section>
      <h2>Conditions</h2>
      <Table
        caption="Conditions"
        columns={conditionColumns}
        rows={conditions}
        rowKey={({ type }) => type}
        empty="It has no conditions."
      />
    </section>
  )
}

function PoolNodes({ name }: { readonly name: string }): JSX.Element {
  const version = versionOf('nodes')
  const rows = useMemo(() => rowsOf('nodes').filter(({ nodePool }) => nodePool === name), [version, name])
  return (
    <section id="object-nodes">
      <h2>Nodes and NodeClaims ({rows.length})</h2>
      {rows.length === 0 ? <p class="empty">It has no nodes.</p> : <NodeTable rows={rows} isOfPool />}
    </section>
  )
}

const podColumns: readonly Column<PodOnNode>[] = [
  { title: 'Pod', cell: ({ id }) => <PodLink id={id} most={60} />, order: ({ id }) => id },
  {
    title: 'Owner',
    cell: ({ namespace, owner }) => <OwnerLink namespace={namespace} owner={owner} most={50} />,
    order: ({ owner }) => owner,
  },
  { title: 'Node', cell: ({ node }) => <ObjectLink kind="Node" name={node} />, order: ({ node }) => node },
  { title: 'State', cell: podState },
  ...['cpu', 'memory'].map(
    (resource): Column<PodOnNode> => ({
      title: resource === 'cpu' ? 'CPU' : 'Memory',
      cell: ({ requests }) => amountText(resource, requests[resource] ?? 0),
      order: ({ requests }) => requests[resource] ?? 0,
      isNumber: true,
    }),
  ),
]

/** Why pods are not known; undefined if they are. */
function unlistedPods(): string | undefined {
  return absences.value.find(({ what }) => what === 'pods')?.why
}

function podState({ isRunning, node }: PodOnNode): string {
  return isRunning ? 'running' : node === undefined ? 'waits for a node' : 'starting'
}

function Pods({
  all,
  rows,
  ofNode,
}: NonNullable<ObjectAnswer['pods']> & { readonly ofNode: boolean }): JSX.Element {
  const unlisted = unlistedPods()
  const columns = podColumns.filter(({ title }) => title !== (ofNode ? 'Node' : 'Owner'))
  if (unlisted !== undefined)
    return (
      <section>
        <h2>Pods</h2>
        <p class="failure">Pods cannot be listed: {unlisted}</p>
      </section>
    )
  return (
    <section id="object-pods">
      <h2>Pods ({all})</h2>
      {all > rows.length && (
        <p>
          The first {rows.length} of {all} by name.
        </p>
      )}
      <Table
        caption="Pods"
        columns={columns}
        rows={rows}
        rowKey={({ id }) => id}
        first={{ title: 'Pod' }}
        empty="It has no pods that run or wait."
      />
    </section>
  )
}

const mostDecisions = 50

/** Entries of the journal that name the object; of a node those of its NodeClaim, too. */
function Decisions({
  of: ref,
  relations,
}: {
  readonly of: ObjectRef
  readonly relations: Relations
}): JSX.Element {
  const version = versionOf('decisions')
  const { node = ref, nodeClaim = ref } = relations
  const entries = useMemo(
    () =>
      rowsOf('decisions')
        .filter((entry) => isAbout(entry, ref, node.name, nodeClaim.name))
        .toSorted((a, b) => (a.at < b.at ? 1 : -1)),
    [version, ref.name, ref.namespace, node.name, nodeClaim.name],
  )
  const absent = absences.value.find(({ what }) => what === 'journal')
  return (
    <section>
      <h2>Decisions{absent === undefined && ` (${entries.length})`}</h2>
      {absent !== undefined && <p class="empty">{absent.why}</p>}
      {absent === undefined && entries.length === 0 && (
        <p class="empty">No decision of the journal names it.</p>
      )}
      <ol class="journal">
        {entries.slice(0, mostDecisions).map((entry) => (
          <li key={entry.id} class={`entry kind-${entry.kind}`}>
            <When at={entry.at} withDate />
            <span class="kind">{entry.kind}</span>
            <a href={`/decisions?entry=${encodeURIComponent(entry.id)}`}>
              {entry.reason}: {entry.message}
            </a>
          </li>
        ))}
      </ol>
      {entries.length > mostDecisions && (
        <p>
          The newest {mostDecisions} of {entries.length}.{' '}
          <a href={`/decisions?filter=${encodeURIComponent(ref.name)}`}>All of them</a>
        </p>
      )}
    </section>
  )
}

function isAbout(entry: DecisionRow, ref: ObjectRef, node: string, nodeClaim: string): boolean {
  switch (ref.kind) {
    case 'Node':
    case 'NodeClaim':
      return (
        entry.nodes.includes(node) ||
        entry.nodeClaims.includes(nodeClaim) ||
        entry.replacements?.includes(nodeClaim) === true
      )
    case 'NodePool':
      return entry.nodePool === ref.name
    case 'Pod':
      return entry.pods?.names.includes(`${ref.namespace ?? ''}/${ref.name}`) === true
    default:
      return (
        ref.namespace !== undefined &&
        entry.pods?.names.some((name) => name.startsWith(`${ref.namespace ?? ''}/${ref.name}-`)) === true
      )
  }
}

const eventColumns: readonly Column<ObjectEvent>[] = [
  {
    title: 'When',
    cell: ({ at }) => (at === undefined ? '?' : <When at={at} withDate />),
    order: ({ at }) => at,
  },
  { title: 'Type', cell: ({ type }) => type, order: ({ type }) => type },
  { title: 'Reason', cell: ({ reason }) => <Name name={reason} most={60} />, order: ({ reason }) => reason },
  {
    title: 'Message',
    cell: ({ count, message }) => (
      <>
        <Sentence text={message} />
        {count > 1 && <span class="quiet"> ({count} times)</span>}
      </>
    ),
    isText: true,
  },
]

function Events({ events }: { readonly events: ObjectAnswer['events'] }): JSX.Element {
  return (
    <section>
      <h2>Events</h2>
      {'absent' in events ? (
        <p class="empty">{events.absent}</p>
      ) : (
        <Table
          caption="Events"
          columns={eventColumns}
          rows={events}
          rowKey={({ at = '', message, reason }) => `${at} ${reason} ${message}`}
          first={{ title: 'When', isDown: true }}
          empty="It has no events; the API server keeps them for an hour."
        />
      )}
    </section>
  )
}

const labelColumns: readonly Column<readonly [string, string]>[] = [
  { title: 'Label', cell: ([key]) => <Name name={key} most={80} />, order: ([key]) => key },
  { title: 'Value', cell: ([, value]) => <Name name={value} most={80} />, order: ([, value]) => value },
]

function Labels({ object: { labels } }: { readonly object: ShownObject }): JSX.Element {
  return (
    <section>
      <h2>Labels</h2>
      <Table
        caption="Labels"
        columns={labelColumns}
        rows={labels}
        rowKey={([key]) => key}
        first={{ title: 'Label' }}
        empty="It has no labels."
      />
    </section>
  )
}

function Yaml({ text }: { readonly text: string }): JSX.Element {
  return (
    <section>
      <h2>YAML</h2>
      <details>
        <summary>
          Without managed fields, values of environment variables and what looks like a secret
        </summary>
        <CopyButton text={text} what="YAML" />
        <pre tabIndex={0} aria-label="YAML">
          {text}
        </pre>
      </details>
    </section>
  )
}

/** An address of the page that names no object. */
export function NoObject(): JSX.Element {
  return (
    <p>
      This address names no object. Search for one with <kbd>/</kbd>, or choose a view above.
    </p>
  )
}
