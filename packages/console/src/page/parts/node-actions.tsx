import type { JSX } from 'preact'
import type { PageNodeRow } from '../../model/page-view.ts'
import { ActionButton } from './act.tsx'

/** What can be done with a node and its NodeClaim. */
export function NodeActions({ row }: { readonly row: PageNodeRow | undefined }): JSX.Element {
  const { cordoned = false, node, nodeClaim } = row ?? {}
  return (
    <>
      {node !== undefined && (
        <>
          <ActionButton request={{ kind: cordoned ? 'uncordon' : 'cordon', node }}>
            {cordoned ? 'Uncordon' : 'Cordon'}
          </ActionButton>
          <ActionButton request={{ kind: 'drain', node }}>Drain</ActionButton>
        </>
      )}
      {nodeClaim !== undefined && (
        <ActionButton request={{ kind: 'delete', target: { kind: 'nodeclaim', name: nodeClaim } }}>
          Delete NodeClaim
        </ActionButton>
      )}
    </>
  )
}
