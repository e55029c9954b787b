/** What the infrastructure knows about a Machine. Times are monotonic. */
import type { ResourceType } from '@tenon/api'
import type { KubeletHandle } from '@tenon/devcluster'
import type { Random } from '@tenon/runtime'
import { effectOf, type Faults, type MachineEffect } from '../faults.ts'
import type { FullMachine } from '../kinds.ts'
import { type ClusterApiSettings, drawDelay } from '../settings.ts'

export interface MachineRecord {
  /** Machine, or the instance of a MachinePool without Machines. */
  readonly type: ResourceType<FullMachine>
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Name of its infrastructure template. */
  readonly template: string
  readonly effects: readonly MachineEffect[]
  readonly sinceMs: number
  readonly bootstrapAtMs: number
  /** The earliest time of its provider ID. */
  readonly providerIdAtMs: number
  /** From the provider ID to the registration of the Node. */
  readonly nodeMs: number
  /** From the end of the drain to the end of the machine. */
  readonly deletionMs: number
  /** Undefined until the infrastructure has created a machine. */
  providerId: string | undefined
  /** When its kubelet starts; undefined = never, or there is no machine yet. */
  bootsAtMs: number | undefined
  /** When the drain of its Node had ended. */
  drainedAtMs: number | undefined
  kubelet: KubeletHandle | undefined
  /** Whether the machine is gone although its object may exist. */
  isLost: boolean
}

interface RecordParts {
  readonly faults: Faults
  readonly random: Random
  readonly settings: ClusterApiSettings
}

/**
 * A random plan for a Machine. Delays are derived from its UID, so that they do not depend on other Machines.
 * @param sinceMs its creation.
 */
export function newRecord(
  type: ResourceType<FullMachine>,
  machine: FullMachine,
  sinceMs: number,
  { faults, random, settings }: RecordParts,
): MachineRecord {
  const { name, namespace = '', uid = '' } = machine.metadata
  const source = random.fork(`machine ${uid}`)
  const bootstrapAtMs = sinceMs + drawDelay(source, settings.bootstrapDelay)
  const providerIdMs = drawDelay(source, settings.providerIdDelay)
  const nodeMs = drawDelay(source, settings.nodeDelay)
  const deletionMs = drawDelay(source, settings.deletionDelay)
  const effects = faults.strike(machine)
  const slow = effectOf(effects, 'slow')
  return {
    type,
    namespace,
    name,
    uid,
    template: machine.spec?.infrastructureRef?.name ?? '',
    effects,
    sinceMs,
    bootstrapAtMs,
    providerIdAtMs: Math.max(bootstrapAtMs, sinceMs + (slow?.providerIdMs ?? providerIdMs)),
    nodeMs: slow?.nodeMs ?? nodeMs,
    deletionMs: deletionMs + (effectOf(effects, 'slowDeletion')?.moreMs ?? 0),
    providerId: undefined,
    bootsAtMs: undefined,
    drainedAtMs: undefined,
    kubelet: undefined,
    isLost: false,
  }
}

/** The failure of a Machine's infrastructure, if there is one. */
export function failureOf(
  { effects, isLost, sinceMs }: MachineRecord,
  nowMs: number,
): { readonly reason: string; readonly message: string } | undefined {
  if (isLost)
    return { reason: 'InvalidConfiguration', message: 'the infrastructure machine has been deleted' }
  const fault = effectOf(effects, 'fails')
  return fault !== undefined && nowMs >= sinceMs + fault.afterMs ? fault : undefined
}
