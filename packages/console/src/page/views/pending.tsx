import { counted } from '@tenon/api/counted'
import type { JSX } from 'preact'
import type { PageRows } from '../../model/page-view.ts'
import type { PendingAnswer, PendingGroup } from '../../answers/explain.ts'
import { Answer, useAnswer } from '../parts/answer.tsx'
import { Explanation } from '../parts/explanation.tsx'
import { NodeLink, ObjectLink, OwnerLink, PodLink, Sentence } from '../parts/object-link.tsx'
import { Table, type Column } from '../parts/table.tsx'
import { Age, isOtherDay, When } from '../parts/when.tsx'
import { choose, chosen } from '../state/router.ts'
import { nowMs, rowsOf, versionOf } from '../state/store.ts'

const shownWorkloads = 5
const againMs = 10_000

/** Pending pods, grouped by reason. */
export function PendingView(): JSX.Element {
  // A decision may change the reasons although no pod changes.
  const version = versionOf('pendingPods') + Math.floor(nowMs.value / againMs)
  const asked = useAnswer<PendingAnswer>('/api/pending', version)
  const rows = rowsOf('pendingPods')
  return (
    <>
      <Answer asked={asked} awaits="the reasons of pods that wait, and what would let them run">
        {({ asOf, groups }) => (
          <>
            <p class="quiet">
              As of <When at={asOf} withDate={isOtherDay(asOf)} />
            </p>
            {groups.length === 0 && <p class="empty">No pod waits for a node.</p>}
            {groups.map((group, at) => (
              <Group
                key={`${group.code} ${group.example.namespace}/${group.example.name}`}
                group={group}
                isFirst={at === 0}
                version={version}
              />
            ))}
          </>
        )}
      </Answer>
      <section>
        <h2>All pods without a node ({rows.length})</h2>
        <Table
          caption="Pods without a node"
          columns={columns}
          rows={rows}
          rowKey={(row) => row.id}
          first={{ title: 'Since' }}
          empty="Every pod has a node."
        />
      </section>
    </>
  )
}

function Group({
  group,
  isFirst,
  version,
}: {
  readonly group: PendingGroup
  readonly isFirst: boolean
  readonly version: number
}): JSX.Element {
  const { example, pods, reasons, summary, workloads } = group
  const id = `${example.namespace}/${example.name}`
  const given = chosen('pod')
  const isOpen = given === undefined ? isFirst : given === id
  const more = workloads.length - shownWorkloads
  return (
    <section class="card">
      <h2>
        {counted(pods, 'pod')}: <Sentence text={summary} />
      </h2>
      <p>
        {workloads.slice(0, shownWorkloads).map((each, at) => (
          <span key={each.name}>
            {at > 0 && ', '}
            <Workload name={each.name} /> ({each.pods})
          </span>
        ))}
        {more > 0 && ` and ${more} more`}
      </p>
      {!isOpen && (
        <ul class="lines">
          {reasons.map((reason) => (
            <li key={reason}>
              ✗ <Sentence text={reason} />
            </li>
          ))}
        </ul>
      )}
      <button type="button" aria-expanded={isOpen} onClick={() => choose('pod', isOpen ? '' : id)}>
        {isOpen ? 'Hide' : 'Show'} what would let {pods === 1 ? 'it' : 'them'} run
      </button>
      {isOpen && (
        <Explanation kind="pod" namespace={example.namespace} name={example.name} version={version} />
      )}
    </section>
  )
}

/** `Deployment shop/web`. */
function Workload({ name }: { readonly name: string }): JSX.Element {
  const [kind = '', ...rest] = name.split(' ')
  const [namespace = '', ...own] = rest.join(' ').split('/')
  return (
    <>
      {kind} <ObjectLink kind={kind} namespace={namespace} name={own.join('/')} most={80} />
    </>
  )
}

const columns: readonly Column<PageRows['pendingPods']>[] = [
  { title: 'Pod', cell: (row) => <PodLink id={row.id} most={50} />, order: (row) => row.id },
  {
    title: 'Owner',
    cell: ({ namespace, owner }) => <OwnerLink namespace={namespace} owner={owner} most={50} />,
    order: (row) => row.owner,
  },
  {
    title: 'Since',
    cell: (row) => <Age since={row.pendingSince ?? row.createdAt} />,
    order: (row) => row.pendingSince ?? row.createdAt,
  },
  {
    title: 'Planned for',
    cell: (row) => <NodeLink name={row.plannedFor} />,
    order: (row) => row.plannedFor,
  },
  {
    title: 'Reason',
    cell: (row) => <Sentence text={row.reason?.message ?? '-'} />,
    order: (row) => row.reason?.message,
    isText: true,
  },
]
