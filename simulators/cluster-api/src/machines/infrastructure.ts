/** The simulated infrastructure: machines of Machines, and its capacity. */
import type { ResourceType } from '@tenon/api'
import { effectOf, type Faults } from '../faults.ts'
import type { HubParts } from '../hub-parts.ts'
import type { FullMachine } from '../kinds.ts'
import { failureOf, type MachineRecord, newRecord } from './machine-record.ts'
import type { MachineRoom } from './machine-room.ts'

/** Time until capacity is requested again. */
const roomRetryMs = 5_000

/** Creates machines, and keeps their records until they are gone. */
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

  /** The record of a Machine; created on first use. */
  meet(type: ResourceType<FullMachine>, machine: FullMachine): MachineRecord {
    const { uid = '', creationTimestamp = '' } = machine.metadata
    const known = this.#records.get(uid)
    if (known !== undefined) return known
    const { runtime, settings } = this.#hub
    const { clock, random } = runtime
    const isOld = machine.status?.phase !== undefined
    const ageMs = isOld ? Math.max(0, clock.now() - Date.parse(creationTimestamp)) : 0
    const parts = { faults: this.#faults, random, settings }
    const record = newRecord(type, machine, clock.monotonic() - ageMs, parts)
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

  /** Machines with this provider ID; several in case of a fault. */
  sharing(providerId: string): readonly MachineRecord[] {
    return [...(this.#byProviderId.get(providerId) ?? [])]
  }

  /** Creates the machine if it is due and there is capacity; returns in how many milliseconds to retry. */
  provide(record: MachineRecord): number | undefined {
    const { api } = this.#hub
    const { clock } = this.#hub.runtime
    const nowMs = clock.monotonic()
    if (record.providerId !== undefined || record.isLost) return undefined
    if (failureOf(record, nowMs) !== undefined) return undefined
    if (effectOf(record.effects, 'neverProvided') !== undefined) return undefined
    if (nowMs < record.providerIdAtMs) return record.providerIdAtMs - nowMs
    if (!this.#hasRoom(record)) return roomRetryMs
    const { namespace, name, type, uid } = record
    const providerId = this.#mistakenId(record) ?? `simulated://${namespace}/${uid}`
    api.patch(type, namespace, name, { spec: { providerID: providerId } })
    this.#assign(record, providerId, nowMs + record.nodeMs)
    return undefined
  }

  /** Starts the kubelet if it is due; returns in how many milliseconds to retry. */
  boot(machine: FullMachine, record: MachineRecord): number | undefined {
    const { bootsAtMs, isLost, kubelet, name } = record
    if (bootsAtMs === undefined || isLost || kubelet !== undefined) return undefined
    const waitMs = bootsAtMs - this.#hub.runtime.clock.monotonic()
    if (waitMs > 0) return waitMs
    // Two nodes of one name cannot run at the same time.
    if (this.records().some((other) => other.kubelet !== undefined && other.name === name)) return roomRetryMs
    this.room.boot(record, machine)
    return undefined
  }

  /** The machine is lost; its object stays. */
  lose(record: MachineRecord): void {
    record.isLost = true
    this.room.cut(record)
  }

  /** Removes the machine and its record. */
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
