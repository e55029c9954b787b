/** Faults of the simulated cloud. */
import { integerBetween, type Random, type Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { FaultKind, Story } from '../story.ts'
import { type FaultDependencies, wrongBy } from './api-faults.ts'
import { wrongAnswers } from './wrong-answers.ts'

const minute = 60_000
const stepMs = minute
/** How long a fault waits for a call to affect. */
const waitingMs = 5 * minute

type CloudSettings = World['cluster']['cloud']['settings']
type FaultRule = Parameters<World['cluster']['cloud']['faults']['add']>[0]

/** Types that the pools of the simulation may launch. */
const scarceTypes = [
  'standard.small',
  'standard.medium',
  'standard.large',
  'standard.extra-large',
  'standard.huge',
  'cpu.extra-large',
  'memory.huge',
]

/** Percentages of the nominal memory that guests see, temporarily and in a whole world. */
const memoryPercents = [97, 95, 90, 80] as const
const usualPercents = [100, 97, 97, 92] as const

/** The cloud of a world without faults, except that guests see a random part of the nominal memory. */
export function usualCloud({ faults, withoutFaults }: Story, random: Random): Partial<CloudSettings> {
  const isExact = faults === 'none' || withoutFaults.includes('smallGuests')
  const memoryCapacityPercent = isExact ? 100 : (usualPercents[random.uint32() % usualPercents.length] ?? 100)
  return { quotas: { instance: 5000, gpua30: 64 }, memoryCapacityPercent }
}

/** Wraps the connection to the cloud, which may lose or reject requests. */
export function faultyCloud(plain: Transport, deps: FaultDependencies): Transport {
  const inner = wrongAnswers(plain, (request) => wrongBy(deps, 'cloudWrongReply', request))
  const { weather, log } = deps
  const strikes = (kind: FaultKind, what: string): boolean => {
    if (!weather.strikes(kind)) return false
    log.record('fault', `${kind} ${what}`)
    return true
  }
  return {
    async send(request, signal) {
      const what = `${request.method} ${(request.path.split('?')[0] ?? '').replace(/[0-9a-f-]{36}/, '*')}`
      if (strikes('cloudRefusal', what)) return refused(weather.source('cloudRefusal'))
      if (strikes('cloudLostRequest', what)) throw new Error('connection reset')
      const response = await inner.send(request, signal)
      if (strikes('cloudLostReply', what)) throw new Error('connection reset')
      return response
    },
  }
}

function refused(random: Random): Awaited<ReturnType<Transport['send']>> {
  const status = [429, 500, 502, 503][random.uint32() % 4] ?? 500
  const body = JSON.stringify({ message: 'injected by the simulation' })
  async function* once(): AsyncGenerator<string> {
    yield body
  }
  return { status, headers: { 'content-type': 'application/json' }, body: once() }
}

/** Starts and ends faults of the cloud, once a minute. Call the result to stop. */
export function playCloudFaults(world: World, deps: FaultDependencies): () => void {
  const { weather, clock, log } = deps
  const { cloud: exoscale } = world.cluster
  const usual = { ...exoscale.settings.operationDelays }
  const usualPercent = exoscale.settings.memoryCapacityPercent
  let isStopped = false
  const timed = (kind: FaultKind, range: readonly [number, number], lift: () => void): void => {
    log.record('fault', kind)
    clock.after(integerBetween(weather.source(kind), ...range), lift)
  }
  /** Affects the next call of the operation, if there is one soon. */
  const lie = (operation: string, effect: FaultRule['effect']): void => {
    clock.after(waitingMs, exoscale.faults.add({ operation, times: 1, effect }))
  }
  const step = (): void => {
    if (isStopped) return
    for (const [kind, operation, effect] of effects) {
      if (!weather.strikes(kind)) continue
      log.record('fault', kind)
      lie(operation, effect)
    }
    if (weather.strikes('drought')) {
      const type = scarceTypes[weather.source('drought').uint32() % (scarceTypes.length + 1)]
      const dry = type === undefined ? scarceTypes : [type]
      exoscale.settings.capacity = {
        ...exoscale.settings.capacity,
        ...Object.fromEntries(dry.map((one) => [one, 0])),
      }
      timed('drought', [5 * minute, 40 * minute], () => {
        const left = Object.entries(exoscale.settings.capacity).filter(([name]) => !dry.includes(name))
        exoscale.settings.capacity = Object.fromEntries(left)
      })
    }
    if (weather.strikes('smallGuests')) {
      const random = weather.source('smallGuests')
      exoscale.settings.memoryCapacityPercent = memoryPercents[random.uint32() % memoryPercents.length] ?? 97
      timed('smallGuests', [5 * minute, 40 * minute], () => {
        exoscale.settings.memoryCapacityPercent = usualPercent
      })
    }
    if (weather.strikes('hangingOperation')) {
      lie('create-instance', { kind: 'hangOperation' })
      const slow = { minMs: 10 * minute, maxMs: 30 * minute }
      exoscale.settings.operationDelays = { ...usual, 'delete-instance': slow }
      timed('hangingOperation', [minute, 3 * minute], () => {
        exoscale.settings.operationDelays = { ...usual }
      })
    }
    clock.after(stepMs, step)
  }
  clock.after(stepMs, step)
  return () => {
    isStopped = true
    exoscale.faults.clear()
    exoscale.settings.capacity = {}
    exoscale.settings.memoryCapacityPercent = usualPercent
    exoscale.settings.operationDelays = { ...usual }
  }
}

const boot = 'create-instance'
const failure = { kind: 'failOperation', reason: 'fault', message: 'injected by the simulation' } as const
const effects: readonly (readonly [kind: FaultKind, operation: string, effect: FaultRule['effect']])[] = [
  ['failedOperation', boot, failure],
  ['failedDeletion', 'delete-instance', failure],
  ['neverBoots', boot, { kind: 'neverBoots' }],
  ['neverJoins', boot, { kind: 'neverJoins' }],
  ['neverReady', boot, { kind: 'neverReady' }],
]
