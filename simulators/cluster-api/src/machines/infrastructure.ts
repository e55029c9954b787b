/** The simulated infrastructure: machines behind Machines, and the room there is for them. */
import { effectOf, type Faults } from '../faults.ts'
import type { HubParts } from '../hub-parts.ts'
import type { FullMachine } from '../kinds.ts'
import { failureOf, type MachineRecord, newRecord } from './machine-record.ts'
import type { MachineRoom } from './machine-room.ts'

/** It is asked for room again after so long. */
const roomRetryMs = 5_000

/** What makes machines, and knows them until they are gone. */
export class Infrastructure {
  readonly room: MachineRoom
  readonly #hub: HubParts
  readonly #faults: Faults
  /** By UID of the Machine, in the order in which they were first seen. */
  readonly #records = new Map<string, MachineRecord>()
  readonly #byProviderId = new Map<string, Set<MachineRecord>>()

  constructor(hub: HubParts, faults: Faults, room: MachineRoom) {
    this.#hub = hub
    this.#faults = faults
    this.room = room
  }

  /** What is known of a Machine, from now on if it was not known before. */
  meet(machine: FullMachine): MachineRecord {
    const { uid = '', creationTimestamp = '' } = machine.metadata
    const known = this.#records.get(uid)
    if (known !== undefined) return known
    const { runtime, settings } = this.#hub
    const { clock, random } = runtime
    const isOld = machine.status?.phase !== undefined
    const ageMs = isOld ? Math.max(0, clock.now() - Date.parse(creationTimestamp)) : 0
    const parts = { faults: this.#faults, random, settings }
    const record = newRecord(machine, clock.monotonic() - ageMs, parts)
    this.#records.set(uid, record)
    const providerId = machine.spec?.providerID
    if (providerId !== undefined) {
      const isThere = this.room.node(record.name)?.spec?.providerID === providerId
      this.#assign(record, providerId, isThere ? clock.monotonic() : record.providerIdAtMs + record.nodeMs)
    }
    return record
  }

  records(): readonly MachineRecord[] {
    return [...this.#records.values()]
  }

  /** Machines with this provider ID: several when the infrastructure has mistaken them. */
  sharing(providerId: string): readonly MachineRecord[] {
    return [...(this.#byProviderId.get(providerId) ?? [])]
  }

  /** Makes the machine when it is due and there is room; answers in how many milliseconds to ask again. */
  provide(record: MachineRecord): number | undefined {
    const { api, kinds } = this.#hub
    const { clock } = this.#hub.runtime
    const nowMs = clock.monotonic()
    if (record.providerId !== undefined || record.isLost) return undefined
    if (failureOf(record, nowMs) !== undefined) return undefined
    if (effectOf(record.effects, 'neverProvided') !== undefined) return undefined
    if (nowMs < record.providerIdAtMs) return record.providerIdAtMs - nowMs
    if (!this.#hasRoom(record)) return roomRetryMs
    const { namespace, name, uid } = record
    const providerId = this.#mistakenId(record) ?? `simulated://${namespace}/${uid}`
    api.patch(kinds.machine, namespace, name, { spec: { providerID: providerId } })
    this.#assign(record, providerId, nowMs + record.nodeMs)
    return undefined
  }

  /** Starts the kubelet when it is due; answers in how many milliseconds to ask again. */
  boot(machine: FullMachine, record: MachineRecord): number | undefined {
    const { bootsAtMs, isLost, kubelet, name } = record
    if (bootsAtMs === undefined || isLost || kubelet !== undefined) return undefined
    const waitMs = bootsAtMs - this.#hub.runtime.clock.monotonic()
    if (waitMs > 0) return waitMs
    // Nodes of one name cannot run at once.
    if (this.records().some((other) => other.kubelet !== undefined && other.name === name)) return roomRetryMs
    this.room.boot(record, machine)
    return undefined
  }

  /** The machine is gone though nobody asked for it; its object stays. */
  lose(record: MachineRecord): void {
    record.isLost = true
    this.room.cut(record)
  }

  /** The machine ends, and the infrastructure forgets it. */
  forget(uid: string): void {
    const record = this.#records.get(uid)
    if (record === undefined) return
    this.room.cut(record)
    this.#records.delete(uid)
    if (record.providerId !== undefined) this.#byProviderId.get(record.providerId)?.delete(record)
  }

  #assign(record: MachineRecord, providerId: string, bootsAtMs: number): void {
    record.providerId = providerId
    if (effectOf(record.effects, 'neverJoins') === undefined) record.bootsAtMs = bootsAtMs
    const sharing = this.#byProviderId.get(providerId) ?? new Set()
    this.#byProviderId.set(providerId, sharing.add(record))
  }

  #hasRoom({ effects, sinceMs, template }: MachineRecord): boolean {
    const { settings } = this.#hub
    const { clock } = this.#hub.runtime
    const fault = effectOf(effects, 'noRoom')
    if (fault !== undefined && clock.monotonic() < sinceMs + (fault.forMs ?? Number.POSITIVE_INFINITY))
      return false
    const made = this.records().filter(({ isLost, providerId }) => providerId !== undefined && !isLost)
    const alike = made.filter((other) => other.template === template)
    const { mostMachines = Number.POSITIVE_INFINITY, mostMachinesOf } = settings
    return (
      made.length < mostMachines && alike.length < (mostMachinesOf.get(template) ?? Number.POSITIVE_INFINITY)
    )
  }

  #mistakenId({ effects }: MachineRecord): string | undefined {
    if (effectOf(effects, 'duplicateProviderId') === undefined) return undefined
    return this.records().find(({ isLost, providerId }) => providerId !== undefined && !isLost)?.providerId
  }
}
