/** What the infrastructure knows of a Machine. Instants are of the monotonic clock. */
import type { KubeletHandle } from '@tenon/devcluster'
import type { Random } from '@tenon/runtime'
import type { Faults, MachineEffect } from '../faults.ts'
import { effectOf } from '../faults.ts'
import type { FullMachine } from '../kinds.ts'
import { type ClusterApiSettings, drawDelay } from '../settings.ts'

export interface MachineRecord {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** Name of its infrastructure template. */
  readonly template: string
  readonly effects: readonly MachineEffect[]
  readonly sinceMs: number
  readonly bootstrapAtMs: number
  /** Never before it. */
  readonly providerIdAtMs: number
  /** From the provider ID to the registration of the Node. */
  readonly nodeMs: number
  /** From the end of the drain to the end of the machine. */
  readonly deletionMs: number
  /** Undefined as long as the infrastructure has made no machine. */
  providerId: string | undefined
  /** When its kubelet starts; undefined if it never does, or as long as there is no machine. */
  bootsAtMs: number | undefined
  /** When the drain of its Node was over. */
  drainedAtMs: number | undefined
  kubelet: KubeletHandle | undefined
  /** Whether the machine is gone though its object may be there. */
  isLost: boolean
}

interface RecordParts {
  readonly faults: Faults
  readonly random: Random
  readonly settings: ClusterApiSettings
}

/**
 * Draws how a Machine will fare. The delays follow from its UID, so that they do not depend on other Machines.
 * @param sinceMs when it was created.
 */
export function newRecord(
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

/** How the infrastructure has failed a Machine, if it has. */
export function failureOf(
  { effects, isLost, sinceMs }: MachineRecord,
  nowMs: number,
): { readonly reason: string; readonly message: string } | undefined {
  if (isLost)
    return { reason: 'InvalidConfiguration', message: 'the infrastructure machine has been deleted' }
  const fault = effectOf(effects, 'fails')
  return fault !== undefined && nowMs >= sinceMs + fault.afterMs ? fault : undefined
}
