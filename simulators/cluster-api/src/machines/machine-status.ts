/** The status of a Machine (cluster-api.md 18). */
import { conditionOf, type Node } from '@tenon/api'
import { healthCheckSucceeded, ownerRemediated } from '../health-checks/health-check-controller.ts'
import type { HubParts } from '../hub-parts.ts'
import { type FullMachine, isLeaving } from '../kinds.ts'
import { type UndatedCondition, writeStatus, newCondition } from '../statuses.ts'
import { isNodeReady } from './drain.ts'
import { failureOf, type MachineRecord } from './machine-record.ts'

/** The current step of a Machine's deletion, as the reason of its condition. */
type EndStep = 'DrainingNode' | 'DeletingInfrastructure'

/** What a pass over a Machine has found. */
export interface Seen {
  readonly node: Node | undefined
  readonly end?: EndStep
  readonly isUpToDate: boolean
}

/** Writes phase, Node and conditions of a Machine. */
export function writeMachineStatus(
  parts: HubParts,
  machine: FullMachine,
  record: MachineRecord,
  seen: Seen,
): void {
  const { kinds } = parts
  const { clock } = parts.runtime
  const nowMs = clock.monotonic()
  const failure = failureOf(record, nowMs)
  const hasData = nowMs >= record.bootstrapAtMs
  const isProvided = machine.spec?.providerID !== undefined
  // The reference stays when its Node is gone.
  const nodeName = seen.node?.metadata.name ?? machine.status?.nodeRef?.name
  const status = {
    phase: phaseOf(machine, { hasFailed: failure !== undefined, hasData, isProvided, nodeName }),
    observedGeneration: machine.metadata.generation ?? 0,
    ...(nodeName !== undefined && { nodeRef: nodeRefOf(kinds.version, nodeName, seen.node, machine) }),
    ...(seen.node !== undefined && {
      nodeInfo: seen.node.status?.nodeInfo,
      addresses: seen.node.status?.addresses,
    }),
    ...(kinds.version === 'v1beta1'
      ? {
          bootstrapReady: hasData,
          infrastructureReady: isProvided,
          failureReason: failure?.reason,
          failureMessage: failure?.message,
        }
      : {
          initialization: { bootstrapDataSecretCreated: hasData, infrastructureProvisioned: isProvided },
          ...(failure !== undefined && {
            deprecated: { v1beta1: { failureReason: failure.reason, failureMessage: failure.message } },
          }),
        }),
  }
  writeStatus(
    parts,
    record.type,
    machine,
    status,
    conditionsOf(machine, { failure, hasData, isProvided }, seen),
  )
}

interface Progress {
  readonly hasFailed: boolean
  readonly hasData: boolean
  readonly isProvided: boolean
  readonly nodeName: string | undefined
}

function phaseOf(machine: FullMachine, { hasFailed, hasData, isProvided, nodeName }: Progress): string {
  if (isLeaving(machine)) return 'Deleting'
  if (hasFailed) return 'Failed'
  if (nodeName !== undefined) return 'Running'
  if (isProvided) return 'Provisioned'
  return hasData ? 'Provisioning' : 'Pending'
}

function nodeRefOf(
  version: HubParts['kinds']['version'],
  name: string,
  node: Node | undefined,
  machine: FullMachine,
): object {
  if (version === 'v1beta2') return { name }
  return node === undefined
    ? (machine.status?.nodeRef ?? { name })
    : { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid }
}

function conditionsOf(
  machine: FullMachine,
  {
    failure,
    hasData,
    isProvided,
  }: {
    readonly failure: { readonly message: string } | undefined
    readonly hasData: boolean
    readonly isProvided: boolean
  },
  { node, end, isUpToDate }: Seen,
): readonly UndatedCondition[] {
  const isReady = node !== undefined && isNodeReady(node)
  const isWhole = isReady && failure === undefined && !isLeaving(machine)
  const wasThere = machine.status?.nodeRef?.name !== undefined
  const lack = wasThere
    ? ({ status: 'False', reason: 'NodeDeleted' } as const)
    : ({ status: 'Unknown', reason: 'NodeInspectionFailed' } as const)
  return [
    newCondition('Available', isWhole, ['Available', 'NotAvailable']),
    newCondition('Ready', isWhole, ['Ready', 'NotReady']),
    newCondition('BootstrapConfigReady', hasData, ['Ready', 'NotReady']),
    {
      ...newCondition('InfrastructureReady', isProvided && failure === undefined, ['Ready', 'NotReady']),
      message: failure?.message ?? '',
    },
    ...(node === undefined
      ? ['NodeHealthy', 'NodeReady'].map((type) => ({ type, ...lack }))
      : [
          newCondition('NodeHealthy', isReady, ['NodeHealthy', 'NodeNotHealthy']),
          newCondition('NodeReady', isReady, ['NodeReady', 'NodeNotReady']),
        ]),
    newCondition('UpToDate', isUpToDate, ['UpToDate', 'NotUpToDate']),
    newCondition('Deleting', isLeaving(machine), [end ?? 'Deleting', 'NotDeleting']),
    newCondition('Paused', false, ['Paused', 'NotPaused']),
    ...[healthCheckSucceeded, ownerRemediated].flatMap((type) => {
      const { status, reason = '' } = conditionOf(machine, type) ?? {}
      return status === undefined ? [] : [{ type, status, reason }]
    }),
  ]
}
