/** Gangs on a real control plane whose scheduler knows PodGroups (gangs.md, R1). */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isConditionTrue, karpenterKinds, kinds, labels, type NodeClaim } from '@tenon/api'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { namespace, scenarioLabel } from '../src/gangs/objects.ts'
import { GangStand } from '../src/gangs/stand.ts'

const features = {
  gates: ['GenericWorkload', 'GangScheduling'],
  apis: ['scheduling.k8s.io/v1alpha2'],
}
/** Longest time that half a gang is paid for (gangs.md 7.3, groupHoldSeconds). */
const boundMs = 120_000
const playLabel = 'gangs.test/play'
const gate = 'gangs.test/wait'

describe('gangs', { concurrency: true }, () => {
  let controlPlane: ControlPlane
  let stand: GangStand

  before(async () => {
    controlPlane = await startControlPlane({ features })
    stand = await GangStand.start(controlPlane.kubeconfigPath)
  })

  after(async () => {
    await stand.stop()
    await controlPlane.stop()
  })

  test('32 pods, of which the cheapest offering can launch 20, all run as another offering has the rest', async (t) => {
    const pool = 'rest'
    stand.provider.stock.set('c-8x-amd64-linux/test-zone-a', 20)
    await stand.pool(pool, { types: ['c-8x-amd64-linux', 's-8x-amd64-linux'], zones: ['test-zone-a'] })
    const half: number[] = []
    stand.lookout.watchers.add(() => {
      const bound = stand.lookout.boundOf(pool).length
      if (bound > 0 && bound < 32) half.push(stand.clock.monotonic())
    })
    await stand.gang(pool, { minCount: 32, scenario: pool, cpu: '7' })
    await stand.untilBound(pool, 32, 90)
    const types = stand.liveClaims(pool).map(({ metadata }) => metadata.labels?.[labels.instanceType])
    assert.equal(types.length, 32)
    assert.equal(types.filter((type) => type === 'c-8x-amd64-linux').length, 20)
    const bindingMs = (half.at(-1) ?? 0) - (half[0] ?? 0)
    t.diagnostic(`all were bound within ${Math.round(bindingMs)} ms of the first`)
    await stand.end(pool)
  })

  test('32 pods, of which nothing but 20 launches can be had, run nowhere, and nothing is paid longer than the bound', async (t) => {
    const pool = 'none'
    stand.provider.stock.set('c-8x-amd64-linux/test-zone-b', 20)
    await stand.pool(pool, { zones: ['test-zone-b'] })
    await stand.gang(pool, { minCount: 32, scenario: pool, cpu: '7' })
    const launched = () => stand.lookout.claimsOf(pool).filter(({ launchedMs }) => launchedMs !== undefined)
    await stand.until('20 instances are launched', 60, () => launched().length >= 20)
    await stand.until('all of them are gone', 60, () =>
      stand.lookout.claimsOf(pool).every(({ goneMs }) => goneMs !== undefined),
    )
    await stand.untilEvent('GroupCapacityReleased', pool, /not all of them could be had/, 10)
    // What is refused stays so for minutes: nothing more is tried.
    await stand.clock.sleep(15_000)
    assert.equal(launched().length, 20)
    assert.deepEqual(stand.liveClaims(pool), [])
    assert.equal(stand.lookout.boundOf(pool).length, 0)
    const paid = launched().map(
      ({ launchedMs = 0, goneMs = Number.POSITIVE_INFINITY }) => goneMs - launchedMs,
    )
    const longest = Math.max(...paid)
    t.diagnostic(`20 instances were paid for up to ${(longest / 1000).toFixed(1)} s`)
    assert.ok(longest < boundMs, `${longest} ms`)
    await stand.end(pool)
  })

  test('GNG-8 of two gangs that compete for a limit for one, one runs and the other waits with the limit as its reason', async () => {
    const pool = 'limited'
    await stand.pool(pool, { limits: { nodes: '5' } })
    const seen: string[] = []
    const groupsNow = () => {
      const claims = stand.lookout.claimsOf(pool).filter(({ goneMs }) => goneMs === undefined)
      return [...new Set(claims.flatMap(({ groups }) => groups))].toSorted()
    }
    const halves: string[] = []
    const boundOf = (group: string) => stand.lookout.boundOf(group).length
    const look = () => {
      const now = groupsNow().join('+')
      if (now !== '' && seen.at(-1) !== now) seen.push(now)
      if (boundOf('one') > 0 && boundOf('other') > 0) halves.push(`${boundOf('one')} and ${boundOf('other')}`)
    }
    stand.lookout.watchers.add(look)
    await Promise.all([
      stand.gang('one', { minCount: 4, scenario: pool, cpu: '7' }),
      stand.gang('other', { minCount: 4, scenario: pool, cpu: '7' }),
    ])
    const winner = await stand.until('one of them runs', 60, () =>
      ['one', 'other'].find((group) => boundOf(group) === 4),
    )
    const loser = winner === 'one' ? 'other' : 'one'
    await stand.untilEvent('GroupNotPlaceable', loser, /its limit on the number of nodes/, 20)
    await stand.clock.sleep(10_000)
    // The scheduler may give all nodes that were launched for the one to the other: their pods are alike.
    assert.equal(seen.length, 1, seen.join())
    assert.ok(seen[0] === 'one' || seen[0] === 'other', seen[0])
    assert.deepEqual([boundOf(loser), halves], [0, []])
    assert.equal(stand.lookout.claimsOf(pool).length, 4)
    stand.lookout.watchers.delete(look)
    // Its nodes are empty then, and those of the other are launched beside what is left.
    await stand.end(winner)
    const own = stand.liveClaims(pool)
    await Promise.all(
      own.map(({ metadata: { name } }) => stand.client.delete(karpenterKinds.nodeClaim, { name })),
    )
    await stand.untilBound(loser, 4, 60)
    await stand.end(loser)
  })

  test('GNG-1 two of four members get nothing and the reason; with the other two, one decision serves all four', async () => {
    const pool = 'members'
    await stand.pool(pool)
    await stand.gang(pool, { minCount: 4, pods: 2, scenario: pool, cpu: '7' })
    await stand.untilEvent('GroupWaitingForMembers', pool, /at least 4 pods and has 2/, 60)
    await stand.clock.sleep(30_000)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
    await stand.pods(pool, 2, { group: pool, scenario: pool, cpu: '7' }, 2)
    await stand.untilBound(pool, 4, 60)
    const claims = stand.lookout.claimsOf(pool)
    assert.equal(claims.length, 4)
    assert.equal(stand.events('GroupLaunching', pool).length, 1)
    await stand.end(pool)
  })

  test('GNG-2 pods whose PodGroup does not exist get nothing until it is made', async () => {
    const pool = 'late-group'
    await stand.pool(pool)
    await stand.pods(pool, 3, { group: pool, scenario: pool, cpu: '7' })
    await stand.clock.sleep(15_000)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
    await stand.group(pool, 3)
    await stand.untilBound(pool, 3, 60)
    assert.equal(stand.lookout.claimsOf(pool).length, 3)
    await stand.end(pool)
  })

  test('GNG-3 of 8 CPU, of which 4 are free on a node, only the other 4 are launched', async () => {
    const pool = 'half'
    await stand.node('half-free', { scenario: pool, cpu: '4' })
    await stand.pool(pool, { types: ['c-4x-amd64-linux', 'c-8x-amd64-linux', 'c-16x-amd64-linux'] })
    await stand.gang(pool, { minCount: 4, scenario: pool, cpu: '1900m' })
    const bound = await stand.untilBound(pool, 4, 60)
    assert.equal(bound.filter(({ spec }) => spec.nodeName === 'half-free').length, 2)
    const types = stand.liveClaims(pool).map(({ metadata }) => metadata.labels?.[labels.instanceType])
    assert.deepEqual(types, ['c-4x-amd64-linux'])
    await stand.end(pool)
  })

  test('GNG-4 two of four members behind gates are none, and no node is launched until the gates go', async () => {
    const pool = 'gated'
    await stand.pool(pool)
    const parts = { group: pool, scenario: pool, cpu: '7' }
    await stand.group(pool, 4)
    await stand.pods(pool, 2, parts)
    await stand.pods(pool, 2, { ...parts, spec: { schedulingGates: [{ name: gate }] } }, 2)
    await stand.untilEvent('GroupWaitingForMembers', pool, /at least 4 pods and has 2/, 60)
    await stand.clock.sleep(10_000)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
    for (const name of [`${pool}-2`, `${pool}-3`])
      await stand.client.patch(kinds.pod, { name, namespace }, { spec: { schedulingGates: null } })
    await stand.untilBound(pool, 4, 60)
    assert.equal(stand.lookout.claimsOf(pool).length, 4)
    await stand.end(pool)
  })

  test('GNG-5 of five pods, of which two must run, three run within limits for three, and two wait with the limit as their reason', async () => {
    const pool = 'spare'
    await stand.pool(pool, { limits: { nodes: '3' } })
    await stand.gang(pool, { minCount: 2, pods: 5, scenario: pool, cpu: '7' })
    const bound = await stand.untilBound(pool, 3, 60)
    const names = new Set(bound.map(({ metadata }) => metadata.name))
    const waiting = Array.from({ length: 5 }, (_, at) => `${pool}-${at}`).filter((name) => !names.has(name))
    assert.equal(waiting.length, 2)
    for (const name of waiting)
      await stand.untilEvent('FailedScheduling', name, /limit on the number of nodes/, 30)
    assert.equal(stand.lookout.claimsOf(pool).length, 3)
    await stand.end(pool)
  })

  test('GNG-16 nodes that become Ready at different times open within a second, none before the last is Ready', async (t) => {
    const pool = 'together'
    stand.provider.lagMs.set(pool, 1500)
    await stand.pool(pool)
    await stand.gang(pool, { minCount: 4, scenario: pool, cpu: '7' })
    await stand.untilBound(pool, 4, 60)
    const nodes = stand.lookout.nodesOf(pool)
    assert.equal(nodes.length, 4)
    const ready = nodes.map(({ readyMs = Number.NaN }) => readyMs)
    const open = nodes.map(({ openMs = Number.NaN }) => openMs)
    t.diagnostic(
      `Ready within ${Math.max(...ready) - Math.min(...ready)} ms, open within ${Math.max(...open) - Math.min(...open)} ms`,
    )
    assert.ok(Math.max(...ready) - Math.min(...ready) > 2000)
    assert.ok(Math.min(...open) >= Math.max(...ready))
    assert.ok(Math.max(...open) - Math.min(...open) <= 1000)
    await stand.end(pool)
  })

  test('GNG-17 a small pod that fits on the nodes of the gang gets a node of its own before they open', async () => {
    const pool = 'stranger'
    const small = 'stranger-small'
    await stand.pool(pool)
    await stand.pool(small, { scenario: pool, types: ['c-2x-amd64-linux'] })
    stand.provider.lagMs.set(small, 1)
    await stand.pods('small', 3, { scenario: pool, cpu: '1500m' })
    await stand.gang(pool, { minCount: 3, scenario: pool, cpu: '7' })
    await stand.untilBound(pool, 3, 60)
    assert.equal(stand.lookout.claimsOf(pool).length, 3)
    await stand.end(pool)
  })

  test('GNG-19 gangs of two large and eight small pods are bound in 20 plays with no second round of nodes', async (t) => {
    const pool = 'mixed'
    const plays = Array.from({ length: 20 }, (_, at) => `mixed-${at}`)
    await stand.pool(pool, {
      types: ['c-16x-amd64-linux', 'c-8x-amd64-linux', 'c-4x-amd64-linux'],
      requirements: [{ key: playLabel, operator: 'Exists' }],
    })
    // More at once would be more than the scheduler tries in time: it never stops trying those that wait.
    for (let at = 0; at < plays.length; at += 5) {
      const together = plays.slice(at, at + 5)
      for (const play of together) {
        const spec = { nodeSelector: { [playLabel]: play } }
        await stand.group(play, 10)
        const parts = { group: play, scenario: pool, spec }
        await stand.pods(`${play}-large`, 2, { ...parts, cpu: '8' })
        await stand.pods(`${play}-small`, 8, { ...parts, cpu: '1' })
      }
      for (const play of together) await stand.untilBound(play, 10, 60)
    }
    const rounds = plays.map((play) => stand.events('GroupLaunching', play).length)
    t.diagnostic(`rounds of nodes: ${rounds.join(' ')}; ${stand.lookout.claimsOf(pool).length} nodes`)
    assert.deepEqual(new Set(rounds), new Set([1]))
    for (const play of plays) await stand.end(play)
  })

  test('GNG-20 of two half-used nodes of a running gang none goes alone, and both once the new one is initialized', async () => {
    const pool = 'running'
    await halfUsed(pool)
    const old = stand.liveClaims(pool).map(({ metadata }) => metadata.name)
    assert.equal(old.length, 2)
    const boundWhenDrained: number[] = []
    const isOther = ({ metadata }: NodeClaim) => !old.includes(metadata.name)
    const look = () => {
      if (!old.some((name) => stand.lookout.claims.get(name)?.isEnding === true)) return
      const successor = stand.liveClaims(pool).find(isOther)
      boundWhenDrained.push(
        successor !== undefined && isConditionTrue(successor, 'Initialized')
          ? stand.lookout.boundOf(pool).length
          : -1,
      )
      stand.lookout.watchers.delete(look)
    }
    stand.lookout.watchers.add(look)
    await stand.untilBlocked(pool, `${namespace}/${pool}, running=4, minCount=4`, 60)
    await stand.until('both nodes go', 90, () =>
      old.every((name) => stand.lookout.claims.get(name)?.isEnding === true),
    )
    // None of its pods had been evicted when the first of the nodes began to go.
    assert.deepEqual(boundWhenDrained, [4])
    assert.equal(stand.liveClaims(pool).filter(isOther).length, 1)
  })

  test('GNG-23 the nodes of a gang of which half has succeeded are left by consolidation and drift', async () => {
    const pool = 'succeeded'
    await halfUsed(pool, { ended: 2 })
    await stand.client.patch(
      karpenterKinds.nodePool,
      { name: pool },
      {
        spec: { template: { metadata: { labels: { [scenarioLabel]: pool, 'gangs.test/revision': '2' } } } },
      },
    )
    await stand.until('its NodeClaims have drifted', 60, () =>
      stand.liveClaims(pool).every((claim) => isConditionTrue(claim, 'Drifted')),
    )
    // Of what changes within two minutes only the first is told, while some may still have been running.
    await stand.untilBlocked(pool, `${namespace}/${pool}, running=`, 60)
    await stand.clock.sleep(10_000)
    assert.equal(stand.liveClaims(pool).length, 2)
    assert.equal(stand.lookout.boundOf(pool).length, 4)
  })

  test('GNG-18 nobody but the scheduler writes the status of a member that is refused', async () => {
    const pool = 'unwritten'
    await stand.pool(pool)
    await stand.pods('written', 1, { scenario: pool, cpu: '7' })
    await stand.gang(pool, { minCount: 3, scenario: pool, cpu: '7' })
    await stand.untilBound(pool, 3, 60)
    const written = new Set(
      stand.requests.flatMap(
        (request) =>
          /^(?:PATCH|PUT) \/api\/v1\/namespaces\/default\/pods\/([^/]+)\/status/.exec(request)?.[1] ?? [],
      ),
    )
    // Ordinary pods are nominated, so that such requests would be seen.
    assert.ok(written.has('written-0'))
    assert.deepEqual(
      [...written].filter((name) => stand.lookout.members.has(name)),
      [],
    )
    await stand.end(pool)
  })

  /** A gang of four on two nodes, of which others have gone; so many of its pods have ended before that. */
  async function halfUsed(name: string, { ended = 0 }: { readonly ended?: number } = {}): Promise<void> {
    await stand.pool(name, {
      disruption: {
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        consolidateAfter: '0s',
        budgets: [{ nodes: '100%' }],
      },
    })
    const others = { scenario: name, cpu: '4500m' }
    await stand.pods(`${name}-other`, 2, others)
    const hasNode = (pod: string) => stand.lookout.pods.get({ name: pod, namespace })?.spec.nodeName
    await stand.until('the others run', 60, () => hasNode(`${name}-other-0`) && hasNode(`${name}-other-1`))
    await stand.gang(name, { minCount: 4, scenario: name, cpu: '1500m' })
    const bound = await stand.untilBound(name, 4, 60)
    assert.equal(new Set(bound.map(({ spec }) => spec.nodeName)).size, 2)
    const succeeded = { status: { phase: 'Succeeded' } }
    for (let at = 0; at < ended; at++) {
      const pod = { name: `${name}-${at}`, namespace }
      await stand.client.patch(kinds.pod, pod, succeeded, { subresource: 'status' })
    }
    for (const at of [0, 1]) await stand.client.delete(kinds.pod, { name: `${name}-other-${at}`, namespace })
  }
})
