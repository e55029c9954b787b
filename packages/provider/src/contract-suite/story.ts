/** Steps of the tests of the contract suite. */
import assert from 'node:assert/strict'
import type { NodeClaim } from '@tenon/api'
import {
  isProviderError,
  type ProviderError,
  type ProviderErrorKind,
  type ProviderInstance,
} from '../contract.ts'
import type { ContractWorld, ProviderProcess } from './harness.ts'

const limitMs = 3_600_000

/** Completes a call on virtual time; rejects if the call does. */
export async function settled<T>(world: ContractWorld, work: Promise<T>): Promise<T> {
  let isDone = false
  const note = (): void => {
    isDone = true
  }
  work.then(note, note)
  assert.ok(await world.advanceUntil(() => isDone, limitMs), 'a call ends within an hour')
  return await work
}

/** Runs a call until it completes, rejects or its process crashes; returns whether the process crashed. */
export async function endedOrDead(
  world: ContractWorld,
  { isDead }: ProviderProcess,
  work: Promise<unknown>,
): Promise<boolean> {
  let isDone = false
  const note = (): void => {
    isDone = true
  }
  work.then(note, note)
  assert.ok(await world.advanceUntil(() => isDone || isDead(), limitMs), 'a call ends within an hour')
  return isDead()
}

/** A claim with its instance, as the core stores them. */
export async function launched(
  world: ContractWorld,
  name: string,
): Promise<{ readonly claim: NodeClaim; readonly instance: ProviderInstance }> {
  const claim = world.createClaim(name)
  const instance = await settled(world, world.provider.create(claim))
  const { labels = {}, annotations = {} } = claim.metadata
  const stored = world.storeClaim({
    ...claim,
    metadata: {
      ...claim.metadata,
      labels: { ...instance.labels, ...labels },
      annotations: { ...annotations, ...instance.annotations },
    },
    status: { ...claim.status, providerID: instance.providerID },
  })
  return { claim: stored, instance }
}

/** Repeats the launch like the core until it succeeds. */
export async function launchedAtLast(
  world: ContractWorld,
  claim: NodeClaim,
  provider = world.provider,
): Promise<ProviderInstance> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await settled(world, provider.create(claim))
    } catch (error) {
      assert.ok(
        isProviderError(error, 'create', 'throttled', 'other'),
        `attempt ${attempt}: ${String(error)}`,
      )
      assert.ok(attempt < 10, `attempt ${attempt}: ${error.message}`)
    }
  }
}

/** Repeats the deletion like the core until the instance is gone. */
export async function deletedAtLast(
  world: ContractWorld,
  claim: NodeClaim,
  provider = world.provider,
): Promise<void> {
  for (let attempt = 1; attempt <= 100; attempt++) {
    const error = await rejection(world, provider.delete(claim))
    if (isProviderError(error, 'nodeClaimNotFound')) return
    assert.equal(error, undefined, `attempt ${attempt}`)
    await world.advanceUntil(() => false, 5000)
  }
  assert.fail('the instance is gone after a hundred attempts')
}

/** What a call rejects with, which must be an error of the contract; undefined if it succeeds. */
export async function rejection(
  world: ContractWorld,
  work: Promise<unknown>,
): Promise<ProviderError | undefined> {
  try {
    await settled(world, work)
    return undefined
  } catch (error) {
    assert.ok(isProviderError(error), `only a ProviderError may come out, not ${String(error)}`)
    return error
  }
}

export async function assertRejects(
  world: ContractWorld,
  work: Promise<unknown>,
  ...allowed: readonly ProviderErrorKind[]
): Promise<ProviderError> {
  const error = await rejection(world, work)
  assert.ok(error !== undefined, `it is rejected as ${allowed.join(' or ')}`)
  assert.ok(allowed.includes(error.kind), `${error.kind} is one of ${allowed.join(', ')}: ${error.message}`)
  return error
}

/** Provider IDs in `list`, without instances being deleted. */
export async function listedIDs(world: ContractWorld): Promise<readonly string[]> {
  const instances = await settled(world, world.provider.list())
  return instances
    .filter(({ deleting }) => !deleting)
    .map(({ providerID }) => providerID)
    .toSorted()
}
