import { counted } from '@tenon/api/counted'
import { useMemo } from 'preact/hooks'
import type { JSX } from 'preact'
import { objectPath } from '../../model/object-ref.ts'
import type { PageNodeRow } from '../../model/page-view.ts'
import { elided } from '../format.ts'
import { type Grouping, groupings } from '../map/layout.ts'
import { MapPicture } from '../map/map-picture.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Explanation } from '../parts/explanation.tsx'
import { Filter, filterText } from '../parts/filter.tsx'
import { NodeActions } from '../parts/node-actions.tsx'
import { factsOf, NodeTable, stateText } from '../parts/node-table.tsx'
import { choose, chosen } from '../state/router.ts'
import { rowOf, rowsOf, versionOf } from '../state/store.ts'

const groupTitles: Readonly<Record<Grouping, string>> = {
  pool: 'NodePool',
  zone: 'Zone',
  type: 'Instance type',
  price: 'Price',
}

/** All nodes as cells and as a table. */
export function MapView(): JSX.Element {
  const given = chosen('group')
  const grouping = groupings.find((each) => each === given) ?? 'pool'
  const asTable = chosen('as') === 'table'
  const filter = filterText()
  const version = versionOf('nodes')
  const rows = useMemo(() => rowsOf('nodes').filter((row) => matches(row, filter)), [version, filter])
  const nodeId = chosen('node')
  return (
    <>
      <div class="controls">
        <label>
          Group by
          <select
            value={grouping}
            onChange={(event) => {
              choose('group', event.currentTarget.value)
            }}
          >
            {groupings.map((each) => (
              <option key={each} value={each}>
                {groupTitles[each]}
              </option>
            ))}
          </select>
        </label>
        <Filter />
        <fieldset class="switch">
          <legend class="hidden">Show as</legend>
          {(['map', 'table'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={(each === 'table') === asTable}
              onClick={() => choose('as', each === 'table' ? 'table' : undefined)}
            >
              {each === 'table' ? 'Table' : 'Map'}
            </button>
          ))}
        </fieldset>
        <span class="quiet">{counted(rows.length, 'node')}</span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">{filter === '' ? 'There are no nodes.' : 'No node matches the filter.'}</p>
      ) : asTable ? (
        <NodeTable rows={rows} />
      ) : (
        <MapPicture rows={rows} grouping={grouping} chosenId={nodeId} />
      )}
      {nodeId !== undefined && <NodeDialog id={nodeId} />}
    </>
  )
}

function matches(row: PageNodeRow, filter: string): boolean {
  if (filter === '') return true
  const texts = [row.name, row.nodePool, row.instanceType, row.zone, row.capacityType, stateText(row)]
  return texts.some((text) => text?.toLowerCase().includes(filter.toLowerCase()) === true)
}

/** Changes when the explanation of the node may have changed. */
function explainedVersion(row: PageNodeRow | undefined): number {
  if (row === undefined) return 0
  return 4 * (row.pods ?? 0) + 2 * Number(row.cordoned) + Number(row.deleting)
}

function NodeDialog({ id }: { readonly id: string }): JSX.Element {
  const row = rowOf('nodes', id)
  const name = row?.name ?? id.replace(/^[a-z]+\//, '')
  const { node, nodeClaim } = row ?? {}
  const [kind, own] = node === undefined ? ['NodeClaim', nodeClaim ?? name] : ['Node', node]
  return (
    <Dialog title={elided(name, 80)} onClose={() => choose('node', undefined)}>
      {row !== undefined && <p>{factsOf(row)}</p>}
      <Explanation kind="node" name={nodeClaim ?? name} version={explainedVersion(row)} />
      <p class="buttons">
        <a class="button" href={objectPath({ kind, name: own })}>
          All of it
        </a>
        <NodeActions row={row} />
      </p>
    </Dialog>
  )
}
