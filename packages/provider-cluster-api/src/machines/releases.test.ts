/** The end of Machines (cluster-api.md 10), and what is found of them (11). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { ownNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import { hubKinds, names, Stage } from '../testing/fake-hub.test-support.ts'

/** Claims with a launched Machine each, by name. */
async function fleet(stage: Stage, ...claimNames: readonly string[]): Promise<readonly NodeClaim[]> {
  return await Promise.all(
    claimNames.map(async (name) => {
      const { providerID } = await stage.launch(name)
      const claim = stage.kube.cache(karpenterKinds.nodeClaim).get({ name })
      assert.ok(claim)
      return stage.kube.put(karpenterKinds.nodeClaim, { ...claim, status: { providerID } })
    }),
  )
}

/** What deletions come to: `done` or the kind of the error. */
async function ends(stage: Stage, claims: readonly NodeClaim[]): Promise<readonly string[]> {
  return await stage.settled(
    Promise.all(
      claims.map(async (claim) => {
        try {
          await stage.provider.delete(claim)
          return 'done'
        } catch (error) {
          return isProviderError(error) ? `${error.kind}: ${error.message}` : String(error)
        }
      }),
    ),
  )
}

const living = (stage: Stage): readonly Machine[] =>
  stage.machines().filter(({ metadata }) => metadata.deletionTimestamp === undefined)

const isMarked = ({ metadata }: Machine) => ownValue(metadata.annotations, names.deleteMachine) !== undefined

function machineOf(stage: Stage, claimName: string): Machine {
  const [name] = stage.boundTo(claimName)
  const machine = stage.machines().find(({ metadata }) => metadata.name === name)
  assert.ok(machine)
  return machine
}

/** Cluster API goes on. */
function reconcile(stage: Stage): void {
  stage.barren.clear()
  stage.kube.put(hubKinds.machineDeployment, stage.deployment() ?? assert.fail())
}

/** The MachineDeployment controller has passed the replicas on, and nothing else has happened yet. */
function observe(stage: Stage): void {
  const deployment = stage.deployment() ?? assert.fail()
  const { generation = 0 } = deployment.metadata
  stage.kube.put(hubKinds.machineDeployment, { ...deployment, status: { observedGeneration: generation } })
}

const byText = (a: string, b: string) => (a < b ? -1 : 1)

const md = { namespace: 'default', name: 'md-0' }

describe('releases', () => {
  test('CAP-50 one of two goes: it is marked and deleted, the other stays, one replica is left', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b')
    assert.ok(a)
    const goes = machineOf(stage, 'a').metadata.name
    assert.deepEqual(await ends(stage, [a]), ['done'])
    assert.equal(stage.replicas(), 1)
    assert.ok(isMarked(machineOf(stage, 'a')))
    assert.ok(!isMarked(machineOf(stage, 'b')))
    await stage.clock.advance(60_000)
    assert.deepEqual(
      stage.machines().map(({ metadata }) => metadata.name),
      stage.boundTo('b'),
    )
    assert.ok(!stage.boundTo('b').includes(goes))
  })

  test('CAP-51 five at once: one write, no replica left', async () => {
    const stage = new Stage()
    stage.add()
    const claims = await fleet(stage, 'a', 'b', 'c', 'd', 'e')
    const before = stage.scalings()
    assert.deepEqual(new Set(await ends(stage, claims)), new Set(['done']))
    assert.equal(stage.scalings() - before, 1)
    assert.equal(stage.replicas(), 0)
    await stage.clock.advance(60_000)
    assert.deepEqual(stage.machines(), [])
  })

  test('CAP-52 on two MachineDeployments each is written once', async () => {
    const stage = new Stage()
    stage.add({ name: 'md-0' })
    stage.add({ name: 'md-1' })
    const claims: NodeClaim[] = []
    for (const [name, type] of [
      ['a', 'md-0'],
      ['b', 'md-1'],
    ] as const) {
      const { providerID } = await stage.launch(name, { types: [type] })
      const claim = stage.kube.cache(karpenterKinds.nodeClaim).get({ name })
      if (claim) claims.push({ ...claim, status: { providerID } })
    }
    const before = stage.scalings()
    await ends(stage, claims)
    assert.equal(stage.scalings() - before, 2)
    assert.deepEqual([stage.replicas('md-0'), stage.replicas('md-1')], [0, 0])
  })

  test('CAP-53 one of three cannot be marked: the two others go, with one write', async () => {
    const stage = new Stage()
    stage.add()
    const claims = await fleet(stage, 'a', 'b', 'c')
    const before = stage.scalings()
    stage.kube.failures.push({
      verb: 'patch',
      plural: 'machines',
      error: new KubeError('server', 500, 'out of order'),
    })
    const told = await ends(stage, claims)
    assert.equal(told.filter((each) => each === 'done').length, 2)
    assert.equal(stage.replicas(), 1)
    assert.equal(stage.scalings() - before, 1)
  })

  test('CAP-93 replicas that cannot be lowered: everybody hears it, nothing is deleted, and the next attempt lowers them once', async () => {
    const stage = new Stage()
    stage.add()
    const claims = await fleet(stage, 'a', 'b')
    stage.kube.failures.push({
      verb: 'patch',
      plural: 'machinedeployments',
      error: new KubeError('server', 500, 'out of order'),
    })
    for (const each of await ends(stage, claims)) assert.match(each, /out of order/)
    assert.equal(stage.replicas(), 2)
    assert.equal(living(stage).length, 2)
    assert.deepEqual(await ends(stage, claims), ['done', 'done'])
    assert.equal(stage.replicas(), 0)
    await stage.clock.advance(60_000)
    assert.deepEqual(stage.machines(), [])
    assert.equal(stage.replicas(), 0)
  })

  test('CAP-57 trap 1 a Machine is counted once, however often its deletion is asked for', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b', 'c')
    assert.ok(a)
    // The process dies between the replicas and the Machine.
    const remove = stage.kube.delete.bind(stage.kube)
    stage.kube.delete = () => Promise.reject(new KubeError('transport', 0, 'socket hang up'))
    await ends(stage, [a])
    await ends(stage, [a])
    stage.kube.delete = (type, key, options) => remove(type, key, options)
    assert.equal(stage.replicas(), 2)
    assert.deepEqual(await ends(stage, [a, a]), ['done', 'done'])
    assert.equal(stage.replicas(), 2)
    await stage.clock.advance(60_000)
    assert.equal(stage.machines().length, 2)
    assert.deepEqual(await ends(stage, [a]), [
      'nodeClaimNotFound: nodeclaim not found, NodeClaim a has no Machine',
    ])
    assert.equal(stage.replicas(), 2)
  })

  test('CAP-55 three go where one replica is left: none below zero', async () => {
    const stage = new Stage()
    stage.add()
    const claims = await fleet(stage, 'a', 'b', 'c')
    stage.barren.add('md-0')
    await stage.kube.patch(hubKinds.machineDeployment, md, { spec: { replicas: 1 } })
    assert.deepEqual(await ends(stage, claims), ['done', 'done', 'done'])
    assert.equal(stage.replicas(), 0)
  })

  test('CAP-56 three come and two go at eight, with three free: six in the end', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 3 } })
    await stage.clock.advance(5000)
    const claims = await fleet(stage, 'a', 'b', 'c')
    await fleet(stage, 'd', 'e')
    await stage.kube.patch(hubKinds.machineDeployment, md, { spec: { replicas: 8 } })
    await stage.clock.advance(5000)
    const launches = ['x', 'y', 'z'].map((name) => stage.launch(name))
    const [told] = await Promise.all([ends(stage, claims.slice(0, 2)), ...launches])
    assert.deepEqual(told, ['done', 'done'])
    assert.equal(stage.replicas(), 6)
    await stage.clock.advance(60_000)
    assert.equal(stage.machines().length, 6)
    for (const name of ['c', 'd', 'e', 'x', 'y', 'z']) assert.equal(stage.boundTo(name).length, 1, name)
  })

  test('CAP-45 a claim without provider ID has its Machine found by the annotation; CAP-47 one that goes is left alone', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.providerMs = 600_000
    const claim = stage.claim('a')
    await stage.settled(stage.provider.create(claim).catch(() => undefined))
    const [machine] = stage.machines()
    assert.ok(machine)
    const named = {
      ...claim,
      metadata: { ...claim.metadata, annotations: { [names.machine]: `default/${machine.metadata.name}` } },
    }
    stage.delays.deletionMs = 600_000
    assert.deepEqual(await ends(stage, [named]), ['done'])
    assert.equal(stage.replicas(), 0)
    const before = stage.kube.writes.length
    assert.deepEqual(await ends(stage, [named]), ['done'])
    assert.equal(stage.kube.writes.length, before)
  })

  test('CAP-46 CAP-59 an unknown provider ID is not found, an empty one is refused, a known one is read even of a Machine without mark', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const claim = { ...stage.claim('a'), status: { providerID: 'test:///nobody' } }
    assert.match((await ends(stage, [claim]))[0] ?? '', /^nodeClaimNotFound/)
    await assert.rejects(stage.provider.get('test:///nobody'), (error) =>
      isProviderError(error, 'nodeClaimNotFound'),
    )
    await assert.rejects(stage.provider.get(''), (error) => isProviderError(error, 'other'))
    const { providerID, nodeClaimName } = await stage.provider.get('test:///md-0-0001')
    assert.deepEqual([providerID, nodeClaimName], ['test:///md-0-0001', undefined])
  })

  test('trap 13 provider IDs are compared as they are', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const key = { namespace: 'default', name: 'md-0-0001' }
    await stage.kube.patch(hubKinds.machine, key, { spec: { providerID: 'test:///x\n' } })
    await assert.rejects(stage.provider.get('test:///x'), (error) =>
      isProviderError(error, 'nodeClaimNotFound'),
    )
    assert.equal((await stage.provider.get('test:///x\n')).providerID, 'test:///x\n')
  })

  test('CAP-48 a Machine that no MachineDeployment made is not deleted, and is named', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a')
    assert.ok(a)
    const { name } = machineOf(stage, 'a').metadata
    const key = { namespace: 'default', name }
    await stage.kube.delete(hubKinds.machineDeployment, md)
    assert.match((await ends(stage, [a]))[0] ?? '', /^other: MachineDeployment default\/md-0 does not exist/)
    await stage.kube.patch(hubKinds.machine, key, { metadata: { labels: { [names.deploymentName]: null } } })
    assert.match(
      (await ends(stage, [a]))[0] ?? '',
      new RegExp(`^other: Machine default/${name} has no label`),
    )
    assert.equal(living(stage).length, 1)
  })

  test('trap 17 a Machine goes although its MachineDeployment has no replicas', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a')
    assert.ok(a)
    stage.barren.add('md-0')
    const { spec: { replicas: _replicas, ...spec } = {}, ...deployment } = stage.deployment() ?? assert.fail()
    stage.kube.put(hubKinds.machineDeployment, { ...deployment, spec })
    assert.deepEqual(await ends(stage, [a]), ['done'])
    assert.deepEqual(living(stage), [])
  })

  test('CAP-94 two Machines with one provider ID: neither is deleted, both are named', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b')
    assert.ok(a)
    const key = { namespace: 'default', name: machineOf(stage, 'b').metadata.name }
    await stage.kube.patch(hubKinds.machine, key, { spec: { providerID: a.status?.providerID } })
    const [told] = await ends(stage, [a])
    assert.match(told ?? '', /^other: provider ID .* is that of default\/md-0-0001 and default\/md-0-0002/)
    assert.equal(living(stage).length, 2)
    assert.equal(stage.replicas(), 2)
  })

  test('a Machine of another claim, or of none, is not deleted for a claim that has its provider ID', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const free = { ...stage.claim('x'), status: { providerID: 'test:///md-0-0001' } }
    assert.match((await ends(stage, [free]))[0] ?? '', /belongs to no NodeClaim/)
    const [a] = await fleet(stage, 'a')
    assert.ok(a)
    const thief = { ...a, metadata: { ...a.metadata, name: 'y', uid: 'uid-y' } }
    assert.match((await ends(stage, [thief]))[0] ?? '', /belongs to NodeClaim a: it is not deleted for y/)
    assert.equal(living(stage).length, 1)
  })

  test('CAP-60 CAP-61 CAP-64 the list has the Machines of claims, of all namespaces', async () => {
    const stage = new Stage()
    assert.deepEqual(await stage.provider.list(), [])
    stage.add({ name: 'md-0', namespace: 'one' })
    stage.add({ name: 'md-1', namespace: 'two', spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    await stage.launch('a', { types: ['md-0'] })
    assert.equal((await stage.provider.list()).length, 1)
    await stage.launch('b', { types: ['md-1'] })
    assert.deepEqual(
      (await stage.provider.list()).map(({ nodeClaimName }) => nodeClaimName ?? '').toSorted(byText),
      ['a', 'b'],
    )
  })

  test('CAP-62 CAP-63 trap 12 a Machine whose MachineDeployment says nothing of it is listed all the same', async () => {
    const stage = new Stage()
    stage.add()
    await fleet(stage, 'a', 'b')
    const key = { namespace: 'default', name: machineOf(stage, 'a').metadata.name }
    await stage.kube.patch(hubKinds.machine, key, { metadata: { labels: { [names.deploymentName]: null } } })
    const listed = await stage.provider.list()
    assert.deepEqual(listed.map(({ nodeClaimName }) => nodeClaimName ?? '').toSorted(byText), ['a', 'b'])
    assert.deepEqual(listed.find(({ nodeClaimName }) => nodeClaimName === 'a')?.capacity, {})
  })

  test('CAP-67 a Machine drifts where Cluster API waits for its deletion, unless the class leaves that to others', async () => {
    for (const [strategy, driftPolicy, expected] of [
      ['OnDelete', 'Replace', 'MachineNotUpToDate'],
      ['OnDelete', 'Ignore', undefined],
      ['RollingUpdate', 'Replace', undefined],
    ] as const) {
      const stage = new Stage()
      stage.add({ spec: { rollout: { strategy: { type: strategy } } } })
      const { clusterAPINodeClassKind } = await import('../node-class.ts')
      await stage.kube.patch(clusterAPINodeClassKind, { name: 'default' }, { spec: { driftPolicy } })
      const [a] = await fleet(stage, 'a')
      assert.ok(a)
      assert.equal(await stage.provider.isDrifted(a), undefined)
      const key = { namespace: 'default', name: machineOf(stage, 'a').metadata.name }
      const conditions = [{ type: 'UpToDate', status: 'False', reason: 'NotUpToDate', message: '' }]
      await stage.kube.patch(hubKinds.machine, key, { status: { conditions } })
      assert.equal(await stage.provider.isDrifted(a), expected)
    }
  })

  test('trap 11 while a rollout decides which MachineSet shrinks, replicas are not lowered', async () => {
    for (const [strategy, oldest, lowered] of [
      ['RollingUpdate', 'md-0-set', false],
      ['OnDelete', 'md-0-set', true],
      ['OnDelete', 'another', false],
    ] as const) {
      const stage = new Stage()
      stage.add({ spec: { rollout: { strategy: { type: strategy } } } })
      const [a] = await fleet(stage, 'a', 'b')
      assert.ok(a)
      for (const [name, creationTimestamp] of [
        ['md-0-set', oldest === 'md-0-set' ? '2020-01-01T00:00:00Z' : '2022-01-01T00:00:00Z'],
        ['another', '2021-01-01T00:00:00Z'],
      ] as const)
        stage.kube.put(hubKinds.machineSet, {
          apiVersion: 'cluster.x-k8s.io/v1beta2',
          kind: 'MachineSet',
          metadata: {
            name,
            namespace: 'default',
            creationTimestamp,
            labels: { [names.deploymentName]: 'md-0' },
          },
          spec: { replicas: 1 },
          status: { observedGeneration: 1 },
        })
      assert.deepEqual(await ends(stage, [a]), ['done'])
      assert.equal(stage.replicas(), lowered ? 1 : 2, `${strategy} ${oldest}`)
      if (lowered) await stage.clock.advance(1000)
      assert.equal(living(stage).length, 1)
    }
  })

  test('RPB-33 a Machine is left to Cluster API until the lowered replicas have reached its MachineSet', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b', 'c')
    assert.ok(a)
    stage.barren.add('md-0')
    for (let attempt = 0; attempt < 5; attempt++) {
      assert.deepEqual(await ends(stage, [a]), ['done'])
      await stage.clock.advance(10_000)
    }
    assert.equal(stage.replicas(), 2)
    assert.deepEqual(living(stage).filter(isMarked), [machineOf(stage, 'a')])
    assert.equal(living(stage).length, 3)
    await stage.clock.advance(5 * 60_000)
    assert.match(
      (await ends(stage, [a]))[0] ?? '',
      /Cluster API has not acted on the 2 replicas of MachineDeployment default\/md-0/,
    )
    reconcile(stage)
    await stage.clock.advance(10_000)
    assert.match((await ends(stage, [a]))[0] ?? '', /nodeClaimNotFound/)
    assert.deepEqual(
      stage
        .machines()
        .map(({ metadata }) => metadata.name)
        .toSorted(byText),
      [...stage.boundTo('b'), ...stage.boundTo('c')].toSorted(byText),
    )
  })

  test('RPB-33 a MachineSet that lags is waited for like its MachineDeployment', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b')
    assert.ok(a)
    stage.barren.add('md-0')
    const { replicas = 0 } = stage.deployment()?.spec ?? {}
    assert.equal(replicas, 2)
    const set = (observedGeneration: number) =>
      stage.kube.put(hubKinds.machineSet, {
        apiVersion: 'cluster.x-k8s.io/v1beta2',
        kind: 'MachineSet',
        metadata: {
          name: 'md-0-set',
          namespace: 'default',
          generation: 2,
          labels: { [names.deploymentName]: 'md-0' },
        },
        spec: { replicas: 1 },
        status: { observedGeneration },
      })
    set(1)
    await ends(stage, [a])
    observe(stage)
    await ends(stage, [a])
    assert.equal(living(stage).length, 2)
    set(2)
    await ends(stage, [a])
    assert.deepEqual(living(stage), [machineOf(stage, 'b')])
  })

  test('RPB-33 a Machine whose replica another claim has taken before Cluster API acted goes when it has', async () => {
    const stage = new Stage()
    stage.add()
    const [a] = await fleet(stage, 'a', 'b')
    assert.ok(a)
    stage.barren.add('md-0')
    await ends(stage, [a])
    const launched = stage.provider.create(stage.claim('c'))
    await stage.clock.advance(5000)
    assert.equal(stage.replicas(), 2)
    reconcile(stage)
    await stage.clock.advance(1000)
    assert.equal(living(stage).length, 2, 'its MachineSet does not shrink')
    await ends(stage, [a])
    await stage.settled(launched)
    await stage.clock.advance(10_000)
    assert.deepEqual(
      stage
        .machines()
        .map(({ metadata }) => metadata.name)
        .toSorted(byText),
      [...stage.boundTo('b'), ...stage.boundTo('c')].toSorted(byText),
    )
  })

  test('CAP-34 a claim whose launch could not be noted has the same Machine at the next attempt', async () => {
    const stage = new Stage()
    stage.add()
    const first = await stage.launch('a')
    const again = await stage.settled(stage.newProvider(stage.kube).create(stage.claim('a')))
    assert.equal(again.providerID, first.providerID)
    assert.equal(stage.machines().length, 1)
    assert.equal(ownValue(machineOf(stage, 'a').metadata.annotations, ownNames.nodeClaim), 'a')
  })
})
