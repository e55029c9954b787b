/** What others do to Machines while Tenon decides about them (cluster-api.md 8 to 10, traps 2, 7, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, type KubeObject, type NodeClaim, ownValue } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { ownNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import { hubKinds, names, Stage } from '../testing/fake-hub.test-support.ts'

const minute = 60_000

function swept(stage: Stage): AbortController {
  const end = new AbortController()
  stage.provider.startControllers(end.signal)
  return end
}

/** A MachineDeployment with free Machines that were made for claims which gave up. */
async function withLeftovers(stage: Stage, count: number): Promise<void> {
  stage.add()
  stage.barren.add('md-0')
  const claims = Array.from({ length: count }, (_, index) => stage.claim(`gone-${index}`))
  await stage.settled(Promise.all(claims.map((claim) => stage.provider.create(claim).catch(() => undefined))))
  for (const { metadata } of claims)
    await stage.kube.delete(karpenterKinds.nodeClaim, { name: metadata.name })
  for (const claim of claims) await stage.settled(stage.provider.delete(claim).catch(() => undefined))
  stage.barren.clear()
  const deployment = stage.deployment()
  assert.ok(deployment)
  stage.kube.put(hubKinds.machineDeployment, deployment)
  await stage.clock.advance(5000)
  assert.equal(stage.machines().length, count)
  assert.deepEqual(stage.boundTo('gone-0'), [])
}

async function launched(stage: Stage, name: string): Promise<NodeClaim> {
  const { providerID } = await stage.launch(name)
  const claim = stage.kube.cache(karpenterKinds.nodeClaim).get({ name })
  assert.ok(claim)
  return stage.kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } })
}

async function told(stage: Stage, work: Promise<unknown>): Promise<string> {
  return await stage.settled(
    work.then(
      () => 'done',
      (error: unknown) => (isProviderError(error) ? `${error.kind}: ${error.message}` : String(error)),
    ),
  )
}

const isMachine = (object: KubeObject | undefined): object is Machine => object?.kind === 'Machine'

describe('interference', () => {
  test('CAP-87 a MachineDeployment that its user has taken back is not written to', async () => {
    const stage = new Stage()
    await withLeftovers(stage, 2)
    await stage.kube.patch(
      hubKinds.machineDeployment,
      { namespace: 'default', name: 'md-0' },
      { metadata: { labels: { [names.member]: null } } },
    )
    const end = swept(stage)
    await stage.clock.advance(60 * minute)
    assert.equal(stage.replicas(), 2)
    assert.equal(stage.machines().length, 2)
    end.abort()
  })

  test('CAP-87 a spare Machine whose replica could not be taken is given back by a later pass', async () => {
    const stage = new Stage()
    await withLeftovers(stage, 1)
    const error = new KubeError('server', 500, 'out of order')
    stage.kube.failures.push({ verb: 'patch', plural: 'machinedeployments', error })
    const end = swept(stage)
    await stage.clock.advance(60 * minute)
    assert.deepEqual(stage.machines(), [])
    assert.equal(stage.replicas(), 0)
    end.abort()
  })

  test('trap 7 a spare Machine that a claim gets while it is about to be given back stays', async () => {
    const stage = new Stage()
    await withLeftovers(stage, 1)
    const get = stage.kube.get.bind(stage.kube)
    let late: Promise<unknown> | undefined
    stage.kube.get = async (type, key) => {
      const found = await get(type, key)
      if (late !== undefined || !isMachine(found)) return found
      late = stage.provider.create(stage.claim('late'))
      await stage.clock.sleep(500)
      return found
    }
    const end = swept(stage)
    await stage.clock.advance(20 * minute)
    assert.ok(late)
    await late
    const [machine, ...others] = stage.machines()
    assert.deepEqual(others, [])
    assert.equal(machine?.metadata.deletionTimestamp, undefined)
    assert.deepEqual(stage.boundTo('late'), [machine?.metadata.name])
    assert.equal(ownValue(machine?.metadata.annotations, names.deleteMachine), undefined)
    assert.equal(stage.replicas(), 1)
    end.abort()
  })

  test('a Machine whose claim was restored with another UID stays, although the list of claims lacks it', async () => {
    const stage = new Stage()
    stage.add()
    const claim = await launched(stage, 'a')
    stage.kube.put(karpenterKinds.nodeClaim, { ...claim, metadata: { ...claim.metadata, uid: 'restored' } })
    const list = stage.kube.list.bind(stage.kube)
    stage.kube.list = async (type, options) => (type.plural === 'nodeclaims' ? [] : await list(type, options))
    const end = swept(stage)
    await stage.clock.advance(20 * minute)
    assert.equal(stage.machines().length, 1)
    assert.equal(stage.replicas(), 1)
    end.abort()
  })

  test('a Machine that one list lacks is not told to be gone', async () => {
    const stage = new Stage()
    stage.add()
    const claim = await launched(stage, 'a')
    const list = stage.kube.list.bind(stage.kube)
    stage.kube.list = async (type, options) => (type.plural === 'machines' ? [] : await list(type, options))
    assert.match(await told(stage, stage.provider.delete(claim)), /^other: Machine default\/md-0-\d+ exists/)
    stage.kube.list = list
    assert.equal(await told(stage, stage.provider.delete(claim)), 'done')
    assert.equal(stage.replicas(), 0)
  })

  test('MachineSets that cannot be listed keep Machines from going, not claims of the same step from theirs', async () => {
    const stage = new Stage()
    stage.add()
    const claim = await launched(stage, 'a')
    const list = stage.kube.list.bind(stage.kube)
    stage.kube.list = async (type, options) => {
      if (type.plural === 'machinesets') throw new KubeError('forbidden', 403, 'not yours')
      return await list(type, options)
    }
    const both = [stage.provider.delete(claim), stage.provider.create(stage.claim('b'))]
    const [end = '', launch = ''] = await Promise.all(both.map((work) => told(stage, work)))
    assert.match(end, /not yours/)
    assert.equal(launch, 'done')
    stage.kube.list = list
    assert.equal(await told(stage, stage.provider.delete(claim)), 'done')
    await stage.clock.advance(10_000)
    assert.deepEqual(
      stage.machines().map(({ metadata }) => metadata.name),
      stage.boundTo('b'),
    )
    assert.equal(stage.replicas(), 1)
  })

  test('claims without UID do not share a Machine', async () => {
    const stage = new Stage()
    stage.add()
    const bare = (name: string) => {
      const { metadata, ...rest } = stage.claim(name)
      const { uid: _uid, ...others } = metadata
      return { ...rest, metadata: others }
    }
    const work = ['a', 'b'].map((name) => told(stage, stage.provider.create(bare(name))))
    for (const each of await Promise.all(work)) assert.match(each, /^other: NodeClaim [ab] has no UID/)
    assert.equal(stage.replicas(), 0)
  })

  test('a Machine that somebody gives to another claim while it boots is not told to the first', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.providerMs = 5000
    const work = told(stage, stage.provider.create(stage.claim('a')))
    await stage.clock.advance(2000)
    const [name = ''] = stage.boundTo('a')
    const annotations = { [ownNames.nodeClaim]: 'b', [ownNames.nodeClaimUid]: 'uid-b' }
    await stage.kube.patch(hubKinds.machine, { namespace: 'default', name }, { metadata: { annotations } })
    assert.match(await work, /^other: Machine default\/md-0-\d+ belongs to NodeClaim b now/)
  })

  test('trap 2 a Machine that another provider takes in the same moment is left to it', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const [first] = stage.machines()
    assert.ok(first)
    const key = { namespace: 'default', name: first.metadata.name }
    const list = stage.kube.list.bind(stage.kube)
    let isTaken = false
    stage.kube.list = async (type, options) => {
      const found = await list(type, options)
      if (type.plural !== 'machines' || isTaken) return found
      isTaken = true
      await stage.kube.patch(hubKinds.machine, key, { metadata: { labels: { [names.member]: '' } } })
      return found
    }
    await stage.launch('a')
    assert.notDeepEqual(stage.boundTo('a'), [first.metadata.name])
    assert.equal(stage.replicas(), 2)
  })

  test('changes of Machines that are in use do not have all Machines listed', async () => {
    const stage = new Stage()
    stage.add()
    await stage.launch('a')
    const [name = ''] = stage.boundTo('a')
    stage.barren.add('md-0')
    const list = stage.kube.list.bind(stage.kube)
    let lists = 0
    stage.kube.list = async (type, options) => {
      if (type.plural === 'machines') lists++
      return await list(type, options)
    }
    const work = told(stage, stage.provider.create(stage.claim('b')))
    for (let i = 0; i < 200; i++) {
      await stage.clock.advance(100)
      await stage.kube.patch(hubKinds.machine, { namespace: 'default', name }, { status: { phase: `P${i}` } })
    }
    assert.match(await work, /made no Machine/)
    assert.ok(lists < 80, `${lists} lists in half a minute`)
  })
})
