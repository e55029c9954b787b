/** A group as the API server of the hub has it now: nothing is removed on the word of a cache. */
import { NodeGroupError } from '@tenon/provider'
import { pauseOf } from '../catalogue/growth.ts'
import { fixedNames } from '../names.ts'
import type { Machine, MachineSet } from '../objects.ts'
import { hubKeyOf, hubText } from '../hub/keys.ts'
import { type GroupHub, ownerName } from './group-hub.ts'
import { claimOf, isPendingId, machineOfPseudoId, normalizedId } from './instances.ts'
import { boundsOf, type GroupRef, groupIdOf, rolloutOf, type Scalable } from './scalable.ts'

export interface LiveGroup {
  readonly ref: GroupRef
  readonly object: Scalable
  /** `spec.replicas`. */
  readonly replicas: number
  /** Of all MachineSets, including those being deleted. */
  readonly machines: readonly Machine[]
}

/** @throws NodeGroupError if it does not exist. */
export async function readScalable(hub: GroupHub, ref: GroupRef, signal: AbortSignal): Promise<Scalable> {
  const object = await hub.client.get(hub.typeOf(ref.kind), ref, { signal })
  if (object === undefined) throw new NodeGroupError(`group ${groupIdOf(ref)} does not exist`)
  return object
}

/** The MachineSets of a MachineDeployment; none of other kinds. */
export async function readSets(
  hub: GroupHub,
  { kind, namespace, name }: GroupRef,
  signal: AbortSignal,
): Promise<readonly MachineSet[]> {
  if (kind !== 'MachineDeployment') return []
  const sets = await hub.client.list(hub.kinds.machineSet, {
    namespace,
    labelSelector: { matchLabels: { [fixedNames.deploymentName]: name } },
    signal,
  })
  return sets.filter((set) => ownerName(set, 'MachineDeployment') === name)
}

/** @param sets those of a MachineDeployment, as just read. */
export async function readMachines(
  hub: GroupHub,
  { kind, namespace, name }: GroupRef,
  object: Scalable,
  sets: readonly MachineSet[],
  signal: AbortSignal,
): Promise<readonly Machine[]> {
  const { selector } = object.spec ?? {}
  const machines = await hub.client.list(hub.kinds.machine, {
    namespace,
    ...(kind !== 'MachinePool' && selector !== undefined && { labelSelector: selector }),
    signal,
  })
  if (kind !== 'MachineDeployment') return machines.filter((machine) => ownerName(machine, kind) === name)
  const setNames = new Set(sets.map(({ metadata }) => metadata.name))
  return machines.filter((machine) => setNames.has(ownerName(machine, 'MachineSet') ?? ''))
}

/** Why nothing of a group may be changed: a clause; undefined if it may be. */
export function holdOfObject(
  hub: GroupHub,
  object: Scalable,
  sets: readonly MachineSet[],
): string | undefined {
  const isEnding = object.metadata.deletionTimestamp !== undefined
  return (
    pauseOf(object, fixedNames, hub.cluster(object)) ??
    (isEnding ? 'it is being deleted' : undefined) ??
    rolloutOf(sets)
  )
}

/** @throws NodeGroupError if the annotations give none. */
export function boundsOfGroup(
  hub: GroupHub,
  ref: GroupRef,
  object: Scalable,
): { readonly min: number; readonly max: number } {
  const bounds = boundsOf(object, hub.names)
  if (bounds.kind === 'bounds') return bounds
  const reason = bounds.kind === 'invalid' ? bounds.reason : 'it is no longer a node group by its annotations'
  throw new NodeGroupError(`group ${groupIdOf(ref)}: ${reason}`)
}

export const isStaying = ({ metadata }: Machine): boolean => metadata.deletionTimestamp === undefined

export const keyTextOf = (machine: Machine): string => hubText(hubKeyOf(machine))

/**
 * The Machines of provider IDs; none for those that are gone or being deleted.
 * @param lowered IDs of a MachinePool's instances for which replicas were lowered already.
 * @throws NodeGroupError if one is not a member, or may not be removed.
 */
export function removableMachines(
  hub: GroupHub,
  live: LiveGroup,
  ids: readonly string[],
  lowered: ReadonlySet<string>,
): readonly Machine[] {
  const found = new Set<Machine>()
  for (const id of ids) {
    const machine = memberOf(hub, live, id, lowered)
    if (machine === undefined || !isStaying(machine)) continue
    const claim = claimOf(machine, live.object, hub.names)
    if (claim !== undefined)
      throw refusal(live, `Machine ${keyTextOf(machine)} belongs to ${claim}: it is not removed`)
    found.add(machine)
  }
  return [...found]
}

/** Those IDs of a MachinePool's instances that have no Machine, and whose replicas were not lowered yet. */
export function instancesWithoutMachine(
  hub: GroupHub,
  live: LiveGroup,
  ids: readonly string[],
  lowered: ReadonlySet<string>,
): readonly string[] {
  return ids.filter(
    (id) => isPoolInstance(live, id) && memberOf(hub, live, id, lowered) === undefined && !lowered.has(id),
  )
}

/** @throws NodeGroupError if the ID belongs to another group, or to several Machines. */
function memberOf(
  hub: GroupHub,
  live: LiveGroup,
  id: string,
  lowered: ReadonlySet<string>,
): Machine | undefined {
  const { machines } = live
  const exact = machines.filter(({ spec }) => id !== '' && spec?.providerID === id)
  const key = exact.length > 0 ? undefined : machineOfPseudoId(id)
  const named = machines.filter((machine) => key !== undefined && keyTextOf(machine) === hubText(key))
  const alike = machines.filter(
    ({ spec }) => id !== '' && normalizedId(spec?.providerID ?? '') === normalizedId(id),
  )
  const [found, second] = [exact, named, alike].find(({ length }) => length > 0) ?? []
  if (second !== undefined)
    throw refusal(live, `${id} is the provider ID of several Machines; nothing is removed`)
  if (found !== undefined) {
    if (key !== undefined && isPendingId(id) && found.status?.nodeRef !== undefined && isStaying(found))
      throw refusal(
        live,
        `Machine ${keyTextOf(found)} has joined as Node ${found.status.nodeRef.name ?? ''} meanwhile: it is not removed as a pending one`,
      )
    return found
  }
  if (isPoolInstance(live, id)) return undefined
  const other = key === undefined ? hub.withProviderId(id)[0] : hub.machine(key)
  if (other === undefined && (key !== undefined || lowered.has(id))) return undefined
  throw refusal(
    live,
    `${id === '' ? 'a Node without a provider ID' : id} is not a member; nothing is removed`,
  )
}

function isPoolInstance({ ref, object }: LiveGroup, id: string): boolean {
  return (
    ref.kind === 'MachinePool' &&
    (object.spec?.providerIDList ?? []).some((each) => normalizedId(each) === normalizedId(id))
  )
}

function refusal({ ref }: LiveGroup, reason: string): NodeGroupError {
  return new NodeGroupError(`group ${groupIdOf(ref)}: ${reason}`)
}
