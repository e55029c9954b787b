/** Decisions of a controller, made again on snapshots that were taken while it decided. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSnapshotText, redacted, snapshotLines, Study, takeSnapshot } from '@tenon/ask'
import { karpenterKinds } from '@tenon/api'
import { InlineDecider, type Operator, type SchedulingDecider } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { eventLoopTurns, type VirtualClock } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

type Decided = Awaited<ReturnType<SchedulingDecider['decide']>>

/** What was decided, as far as names that are drawn do not matter. */
function outcome({ claims, deferred, placements, failures }: Decided): object {
  return {
    claims: claims.map(({ nodePool, requirements, instanceTypes, requests, pods }) => ({
      nodePool,
      requirements,
      instanceTypes,
      requests,
      pods: pods.map(({ metadata }) => metadata.uid),
    })),
    deferred: deferred.map(({ because, claim }) => ({ because, pods: claim.pods.length })),
    placements: placements.map(({ node, pod }) => ({ node, pod: pod.metadata.uid })),
    failures: failures.map(({ pod, reason }) => ({ pod: pod.metadata.uid, reason })),
  }
}

/** What a decision comes to, whatever things are called. */
function plan({ claims, placements, failures, pricePerHour }: Decided): object {
  return {
    claims: claims.map(({ instanceTypes, pods, requests }) => ({
      instanceTypes,
      requests,
      pods: pods.map(({ metadata }) => metadata.uid ?? '').toSorted(),
    })),
    placed: placements.map(({ pod }) => pod.metadata.uid ?? '').toSorted(),
    failed: failures.map(({ pod }) => pod.metadata.uid ?? '').toSorted(),
    pricePerHour,
  }
}

/** Takes a snapshot whenever a decision begins. */
class Watcher {
  readonly seen: { readonly lines: readonly string[]; readonly result: Decided }[] = []
  operator: Operator | undefined
  provider: CloudProvider | undefined

  readonly decider = (clock: VirtualClock): SchedulingDecider => {
    const inner = new InlineDecider(clock)
    return {
      decide: async (input, options) => {
        const { operator, provider } = this
        assert.ok(operator !== undefined && provider !== undefined)
        const origin = { kind: 'controller', identity: 'world', isLeading: true } as const
        const slicing = { clock, turns: eventLoopTurns, sliceMs: 10 }
        const signal = new AbortController().signal
        const snapshot = await takeSnapshot(
          { operator, provider, origin, program: 'test', clock, slicing },
          signal,
        )
        const lines = [...snapshotLines(snapshot)]
        const result = await inner.decide(input, options)
        this.seen.push({ lines, result })
        return result
      },
      examine: (input, question, options) => inner.examine(input, question, options),
      close: () => inner.close(),
    }
  }

  readonly wrapProvider = (provider: CloudProvider): CloudProvider => {
    this.provider = provider
    return provider
  }
}

test('EXP-11 a snapshot that was taken while the controller decided gives the same decision', async () => {
  const watcher = new Watcher()
  const { decider, wrapProvider } = watcher
  const world = await World.start({ seed: 11, provider: 'kwok', decider, wrapProvider })
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: {},
  })
  world.create(karpenterKinds.nodePool, aKwokPool('default', { limits: { cpu: '64' } }))
  watcher.operator = (await world.startOperator()).operator
  for (const [name, replicas, cpu] of [
    ['web', 20, '700m'],
    ['api', 30, '1500m'],
    ['huge', 2, '900'],
  ] as const) {
    world.create(deploymentKind, aDeployment(name, replicas, { cpu, memory: '1Gi' }))
    await world.clock.advance(20_000)
  }
  await world.clock.advance(120_000)
  assert.ok(watcher.seen.length > 3, `${watcher.seen.length} decisions`)
  for (const { lines, result } of watcher.seen) {
    const snapshot = readSnapshotText(lines.join('\n'))
    assert.ok('ok' in snapshot)
    const study = await Study.open(snapshot.ok)
    const decision = await study.decide()
    assert.deepEqual(outcome(decision.result), outcome(result))
    await study.close()
    const hidden = redacted(snapshot.ok, 'key')
    const text = [...snapshotLines(hidden)].join('')
    for (const name of ['web-', 'api-', 'huge-', '"default"', 'world']) assert.ok(!text.includes(name), name)
    const hiddenStudy = await Study.open(hidden)
    const again = await hiddenStudy.decide()
    assert.deepEqual(plan(again.result), plan(result))
    await hiddenStudy.close()
  }
})
