/** Words for stories about commands of the global search: several nodes go, several come in their place. */
import assert from 'node:assert/strict'
import type { NodeClaim } from '@tenon/api'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'
import { setDisruption, tainted } from './disruption-stage.test-support.ts'
import { asking, Fleet, isReady, priced } from './fleet-stage.test-support.ts'
import { isMarked } from './replacing-stage.test-support.ts'

export const small = aType('small', 2)
export const medium = aType('medium', 4)
/** Dear for its size, so that neither of two is worth keeping. */
export const large = priced(aType('large', 8), 0.5)
const types = [small, medium, large]

type Opening = Parameters<typeof Fleet.open>

/** Nodes `a` and `b` of 8 CPU, each with a pod that fills a medium instance and one that fills a small one. */
export async function twoLarge(t: Opening[0], options: Opening[1] = {}): Promise<Fleet> {
  const fleet = await Fleet.open(t, { types, ...options })
  await fleet.nodes({ a: large, b: large })
  fleet.workload('big', ['node-a', 'node-b'], asking({ cpu: '3900m' }))
  fleet.workload('little', ['node-a', 'node-b'], asking({ cpu: '1900m' }))
  await fleet.stage.pass(10 * seconds)
  assert.deepEqual(fleet.notRunning(), [])
  return fleet
}

/** Three nodes of 4 CPU, of which one has room for the pods of all. */
export async function threeMedium(t: Opening[0], options: Opening[1] = {}): Promise<Fleet> {
  const fleet = await Fleet.open(t, { types, ...options })
  await fleet.nodes({ a: medium, b: medium, c: medium })
  for (const [app, cpu] of [
    ['big', '900m'],
    ['little', '300m'],
  ] as const)
    fleet.workload(app, ['node-a', 'node-b', 'node-c'], asking({ cpu }))
  await fleet.stage.pass(10 * seconds)
  assert.deepEqual(fleet.notRunning(), [])
  return fleet
}

/** Nodes may go from now on; until a decision is being checked once more. */
export async function untilDecided({ stage }: Fleet): Promise<void> {
  setDisruption(stage, { consolidateAfter: '0s' })
  const isDecided = () => stage.events('ConsolidationCandidate').length > 0
  assert.ok(await stage.world.clock.advanceUntil(isDecided, minutes), 'nothing was decided')
}

/** Until nodes are marked, and what comes in their place has been asked for. */
export async function untilBegun(fleet: Fleet): Promise<void> {
  const { stage } = fleet
  setDisruption(stage, { consolidateAfter: '0s' })
  assert.ok(await stage.world.clock.advanceUntil(() => tainted(stage).length > 1, minutes), 'nothing began')
  await stage.pass(500)
}

/** Nothing is left of a command that was not carried out, and no pod has moved. */
export function assertUntouched(fleet: Fleet): void {
  assert.deepEqual(madeClaims(fleet.stage), [])
  assertAllStay(fleet)
}

/** The nodes that were to go stay, and so do their pods. */
export function assertAllStay({ stage }: Fleet): void {
  for (const name of ['a', 'b']) {
    assert.ok(!tainted(stage).includes(name), `node-${name} takes no pods`)
    assert.ok(!isMarked(stage, name), `node-${name} is held for one that goes`)
  }
  for (const name of ['big-0', 'big-1', 'little-0', 'little-1']) {
    const pod = stage.podNow(name)
    assert.ok(pod !== undefined && isReady(pod), `${name} has moved`)
  }
}

/** In the end all pods run on cheaper nodes, and nothing is left of the command. */
export async function assertDone(fleet: Fleet, most: number): Promise<void> {
  const { stage } = fleet
  const isCheap = () => fleet.pricePerHour() <= most + 1e-9 && tainted(stage).length === 0
  const isDone = await stage.world.clock.advanceUntil(isCheap, 60 * minutes)
  assert.ok(isDone, `${fleet.pricePerHour()} an hour, ${fleet.notRunning().join()}`)
  assert.ok(await fleet.untilCalm(90 * seconds, 10 * minutes), `no rest: ${fleet.notRunning().join()}`)
  assert.ok(isCheap(), `${fleet.pricePerHour()} an hour`)
}

/** Whether the claim was made in place of others. */
export const replaces = ({ metadata }: NodeClaim): boolean =>
  metadata.annotations?.['tenon.sh/replaces'] !== undefined
