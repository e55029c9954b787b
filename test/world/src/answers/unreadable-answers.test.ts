/** Every call of Kubernetes and of the cloud, answered with what was not asked for (reports.md 9). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { HttpRequest, Transport } from '@tenon/runtime'
import { patternOf, wrongAnswers, type WrongForm, wrongForms } from '../simulation/faults/wrong-answers.ts'
import type { World } from '../world.ts'
import {
  assertMatched,
  callsTo,
  healthyCluster,
  instanceIds,
  runningPods,
} from './healthy-cluster.test-support.ts'

const minute = 60_000
const stay = 3
const grown = 5

/** Which calls are answered wrongly while {@link Disturbance.isOn}. */
class Disturbance {
  isOn = false
  readonly struck = new Map<string, number>()
  readonly #form: WrongForm
  readonly #reachesServer: boolean
  readonly #concerns: (pattern: string) => boolean
  /** How often each call is answered wrongly. */
  readonly #times: number

  constructor(
    form: WrongForm,
    reachesServer: boolean,
    times: number,
    concerns: (pattern: string) => boolean = () => true,
  ) {
    this.#form = form
    this.#reachesServer = reachesServer
    this.#times = times
    this.#concerns = concerns
  }

  way(inner: Transport): Transport {
    return wrongAnswers(inner, (request) => this.#strikes(request))
  }

  #strikes(request: HttpRequest): ReturnType<Parameters<typeof wrongAnswers>[1]> {
    const pattern = patternOf(request)
    const before = this.struck.get(pattern) ?? 0
    if (!this.isOn || before >= this.#times || !this.#concerns(pattern)) return undefined
    this.struck.set(pattern, before + 1)
    return { form: this.#form, reachesServer: this.#reachesServer }
  }
}

/** Nodes come and go while calls are answered wrongly, and nothing is lost, doubled or left over. */
async function play(t: TestContext, disturbance: Disturbance, disturbedMs: number): Promise<World> {
  const way = (inner: Transport) => disturbance.way(inner)
  const world = await healthyCluster(t, stay, { apiPath: way, cloudPath: way })
  const healthy = instanceIds(world)
  const podsBefore = new Set(world.pods().map(({ metadata }) => metadata.name))
  const launches = callsTo(world, 'create-instance')
  const disturb = async (replicas: number) => {
    disturbance.struck.clear()
    disturbance.isOn = true
    world.scale('web', replicas)
    await world.clock.advance(disturbedMs)
    disturbance.isOn = false
  }
  await disturb(grown)
  await world.clock.advance(25 * minute)
  const kept = new Set(world.pods().map(({ metadata }) => metadata.name))
  assert.deepEqual(
    [...podsBefore].filter((name) => !kept.has(name)),
    [],
    'no pod was moved',
  )
  assert.deepEqual(
    healthy.filter((id) => !instanceIds(world).includes(id)),
    [],
    'no healthy instance is lost',
  )
  assert.equal(runningPods(world), grown)
  assertMatched(world, 'after growing')
  const launched = callsTo(world, 'create-instance') - launches
  assert.ok(launched <= 2 * (grown - stay), `${launched} launches for ${grown - stay} pods`)
  await disturb(stay)
  await world.clock.advance(25 * minute)
  assert.equal(runningPods(world), stay)
  assert.equal(instanceIds(world).length, stay)
  assertMatched(world, 'after shrinking')
  return world
}

for (const form of wrongForms) {
  test(`RPT-34 each call answered once with ${form}`, async (t) => {
    await play(t, new Disturbance(form, true, 1), 5 * minute)
  })

  test(`RPT-34 all calls of a minute answered with ${form}`, async (t) => {
    await play(t, new Disturbance(form, false, Number.POSITIVE_INFINITY), minute)
  })
}

if (process.env['TENON_ANSWERS_ALL'] === '1') {
  test('RPT-34 each call by itself, each form, once and for a minute, with and without effect', async (t) => {
    const seen = new Disturbance('nothing', true, 0)
    const patterns = new Set<string>()
    const listening = new Disturbance('nothing', true, 0, (pattern) => patterns.add(pattern).size < 0)
    assert.equal(seen.struck.size, 0)
    await play(t, listening, 5 * minute)
    for (const pattern of patterns) {
      for (const form of wrongForms) {
        for (const [times, ms] of [
          [1, 5 * minute],
          [Number.POSITIVE_INFINITY, minute],
        ] as const) {
          for (const reachesServer of [true, false]) {
            await t.test(`${pattern}: ${form}, ${ms / minute} min, ${reachesServer}`, async (each) => {
              await play(each, new Disturbance(form, reachesServer, times, (one) => one === pattern), ms)
            })
          }
        }
      }
    }
  })
}
