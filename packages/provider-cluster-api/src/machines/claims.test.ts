/** From NodeClaims to Machines (cluster-api.md 7 to 9). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, labels, type NodeClaim, ownValue } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { isProviderError } from '@tenon/provider'
import { ownNames } from '../names.ts'
import { hubKinds, names, Stage } from '../testing/fake-hub.test-support.ts'

const zones = (name: string, zone: string) => ({ [labels.instanceType]: name, [labels.zone]: zone })

/** What a call comes to: `bound` or the words of its error. */
async function outcomes(stage: Stage, work: readonly Promise<unknown>[]): Promise<readonly string[]> {
  const all = Promise.all(
    work.map((each) =>
      each.then(
        () => 'bound',
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      ),
    ),
  )
  return await stage.settled(all)
}

const readsOf = (stage: Stage, plural: string) => {
  let count = 0
  const get = stage.kube.get.bind(stage.kube)
  stage.kube.get = async (type, key) => {
    if (type.plural === plural) count++
    return await get(type, key)
  }
  return () => count
}

describe('claims', () => {
  test('CAP-27 CAP-40 one claim and no replica: one replica, one Machine with a mark, and what its node is like', async () => {
    const stage = new Stage()
    stage.add()
    const instance = await stage.launch('a')
    assert.equal(stage.replicas(), 1)
    const [machine] = stage.machines()
    assert.ok(machine)
    assert.deepEqual(stage.boundTo('a'), [machine.metadata.name])
    assert.equal(ownValue(machine.metadata.labels, names.member), '')
    assert.deepEqual(instance.annotations, { [names.machine]: `default/${machine.metadata.name}` })
    assert.equal(instance.providerID, `test:///${machine.metadata.name}`)
    assert.equal(instance.capacity['cpu'], '4')
    assert.deepEqual(instance.allocatable, instance.capacity)
    assert.equal(instance.labels[labels.instanceType], 'md-0')
  })

  test('CAP-28 five claims and five free Machines: one read, no write, five Machines', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 5 } })
    await stage.clock.advance(5000)
    assert.equal(stage.machines().length, 5)
    const reads = readsOf(stage, 'machinedeployments')
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => stage.launch(name)))
    assert.equal(reads(), 1)
    assert.equal(stage.scalings(), 0)
    assert.equal(new Set(['a', 'b', 'c', 'd', 'e'].flatMap((name) => stage.boundTo(name))).size, 5)
  })

  test('CAP-29 CAP-30 two Machines for five claims: one write, three give up after 30 s, and the next attempt adds none', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 2 } })
    await stage.clock.advance(5000)
    stage.barren.add('md-0')
    const claims = ['a', 'b', 'c', 'd', 'e'].map((name) => stage.claim(name))
    const began = stage.clock.now()
    const told = await outcomes(
      stage,
      claims.map((claim) => stage.provider.create(claim)),
    )
    assert.equal(told.filter((each) => each === 'bound').length, 2)
    assert.match(
      told.find((each) => each !== 'bound') ?? '',
      /made no Machine within 30 s.* 2 Machines for 5 replicas/,
    )
    const took = stage.clock.now() - began
    assert.ok(took >= 30_000 && took < 33_000, `${took} ms`)
    assert.equal(stage.replicas(), 5)
    assert.equal(stage.scalings(), 1)
    stage.barren.clear()
    const deployment = stage.deployment()
    if (deployment) stage.kube.put(hubKinds.machineDeployment, deployment)
    const again = claims.filter((_claim, index) => told[index] !== 'bound')
    assert.deepEqual(
      await outcomes(
        stage,
        again.map((claim) => stage.provider.create(claim)),
      ),
      ['bound', 'bound', 'bound'],
    )
    assert.equal(stage.replicas(), 5)
    assert.equal(stage.scalings(), 1)
  })

  test('CAP-31 claims on two MachineDeployments: each is read and written once', async () => {
    const stage = new Stage()
    stage.add({ name: 'md-0' })
    stage.add({ name: 'md-1' })
    const reads = readsOf(stage, 'machinedeployments')
    await Promise.all([
      stage.launch('a', { types: ['md-0'] }),
      stage.launch('b', { types: ['md-0'] }),
      stage.launch('c', { types: ['md-1'] }),
    ])
    assert.deepEqual([stage.replicas('md-0'), stage.replicas('md-1')], [2, 1])
    assert.equal(stage.scalings(), 2)
    // A patch in the map reads as well.
    assert.equal(reads() - stage.scalings(), 2)
  })

  test('CAP-32 CAP-33 a MachineDeployment that cannot be read or written: everybody hears it, and nothing is changed', async () => {
    for (const verb of ['read', 'written'] as const) {
      const stage = new Stage()
      stage.add()
      const claims = ['a', 'b'].map((name) => stage.claim(name))
      if (verb === 'written')
        stage.kube.failures.push({
          verb: 'patch',
          plural: 'machinedeployments',
          error: new KubeError('server', 500, 'out of order'),
        })
      else {
        const get = stage.kube.get.bind(stage.kube)
        stage.kube.get = async (type, key) => {
          if (type.plural === 'machinedeployments') throw new KubeError('server', 500, 'out of order')
          return await get(type, key)
        }
      }
      const told = await outcomes(
        stage,
        claims.map((claim) => stage.provider.create(claim)),
      )
      for (const each of told) assert.match(each, /out of order/)
      assert.equal(stage.replicas(), 0)
      assert.deepEqual(stage.machines(), [])
    }
  })

  test('trap 15 a conflict about replicas is settled with what is there now', async () => {
    const stage = new Stage()
    stage.add()
    const conflict = new KubeError('conflict', 409, 'the object has been modified')
    for (let i = 0; i < 2; i++)
      stage.kube.failures.push({ verb: 'patch', plural: 'machinedeployments', error: conflict })
    await stage.launch('a')
    assert.equal(stage.replicas(), 1)
  })

  test('trap 16 Machines that cannot be listed: nothing is scaled', async () => {
    const stage = new Stage()
    stage.add()
    const list = stage.kube.list.bind(stage.kube)
    stage.kube.list = async (type, options) => {
      if (type.plural === 'machines') throw new KubeError('server', 500, 'out of order')
      return await list(type, options)
    }
    const [told] = await outcomes(stage, [stage.provider.create(stage.claim('a'))])
    assert.match(told ?? '', /out of order/)
    assert.equal(stage.replicas(), 0)
  })

  test('CAP-35 Machines that go are neither counted nor bound', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 2 } })
    await stage.clock.advance(5000)
    stage.delays.deletionMs = 600_000
    const [one, two] = stage.machines()
    assert.ok(one && two)
    await stage.kube.patch(
      hubKinds.machine,
      { namespace: 'default', name: one.metadata.name },
      { metadata: { annotations: { [names.deleteMachine]: 'yes' } } },
    )
    await stage.kube.delete(hubKinds.machine, { namespace: 'default', name: two.metadata.name })
    stage.barren.add('md-0')
    const [told] = await outcomes(stage, [stage.provider.create(stage.claim('a'))])
    assert.match(told ?? '', /made no Machine/)
    assert.deepEqual(stage.boundTo('a'), [])
  })

  test('CAP-36 Machines of a MachineDeployment of the same name in another namespace are left alone', async () => {
    const stage = new Stage()
    stage.add({ name: 'md-0', namespace: 'one', nodeLabels: zones('m', 'a') })
    stage.add({ name: 'md-0', namespace: 'two', nodeLabels: zones('m', 'b'), spec: { replicas: 3 } })
    await stage.clock.advance(5000)
    const claim = stage.claim('a', { types: ['m'] })
    const inZone: NodeClaim = stage.kube.put(karpenterKinds.nodeClaim, {
      ...claim,
      spec: {
        ...claim.spec,
        requirements: [...claim.spec.requirements, { key: labels.zone, operator: 'In', values: ['a'] }],
      },
    })
    const { annotations } = await stage.settled(stage.provider.create(inZone))
    assert.match(ownValue(annotations, names.machine) ?? '', /^one\//)
    assert.deepEqual([stage.replicas('md-0', 'one'), stage.replicas('md-0', 'two')], [1, 3])
  })

  test('CAP-37 a Machine without provider ID is waited for, and found again', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.providerMs = 90_000
    const claim = stage.claim('a')
    const [first] = await outcomes(stage, [stage.provider.create(claim)])
    assert.match(first ?? '', /Machine default\/md-0-0001 has no provider ID yet/)
    assert.equal(stage.replicas(), 1)
    const [second] = await outcomes(stage, [stage.newProvider(stage.kube).create(claim)])
    assert.match(second ?? '', /has no provider ID yet/)
    await stage.clock.advance(30_000)
    assert.equal((await stage.settled(stage.provider.create(claim))).providerID, 'test:///md-0-0001')
    assert.equal(stage.replicas(), 1)
    assert.equal(stage.machines().length, 1)
  })

  test('CAP-38 an annotation that names no Machine is told', async () => {
    for (const text of ['a/b/c', '', '/x', 'x/', ' / ', 'x']) {
      const stage = new Stage()
      stage.add()
      const claim = stage.claim('a')
      const named = { ...claim, metadata: { ...claim.metadata, annotations: { [names.machine]: text } } }
      const [told] = await outcomes(stage, [stage.provider.create(named)])
      assert.match(told ?? '', /NodeClaim a: annotation cluster.x-k8s.io\/machine is .*NAMESPACE\/NAME/, text)
      assert.equal(stage.replicas(), 0)
    }
  })

  test('CAP-39 CAP-91 a claim that names its Machine gets it without class and without scaling, and is told when it is gone', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const [machine] = stage.machines()
    assert.ok(machine)
    const claim = stage.claim('a')
    const { nodeClassRef: _, ...spec } = claim.spec
    const named = (name: string) => ({
      ...claim,
      metadata: { ...claim.metadata, annotations: { [names.machine]: `default/${name}` } },
      spec: { ...spec, nodeClassRef: { group: '', kind: '', name: '' } },
    })
    const { providerID } = await stage.settled(stage.provider.create(named(machine.metadata.name)))
    assert.equal(providerID, machine.spec?.providerID)
    assert.equal(stage.scalings(), 0)
    assert.deepEqual(stage.boundTo('a'), [machine.metadata.name])
    const other = stage.newProvider(stage.kube)
    await stage.kube.patch(
      hubKinds.machine,
      { namespace: 'default', name: machine.metadata.name },
      { metadata: { annotations: { [ownNames.nodeClaimUid]: null } } },
    )
    const [told] = await outcomes(stage, [other.create(named('gone'))])
    assert.match(told ?? '', /Machine default\/gone does not exist/)
  })

  test('CAP-41 CAP-42 a lone request is served after 100 ms, a stream of them once a second', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.machineMs = 0
    const times: number[] = []
    const patch = stage.kube.patch.bind(stage.kube)
    stage.kube.patch = async (type, key, body, options) => {
      if (type.plural === 'machinedeployments') times.push(stage.clock.now())
      return await patch(type, key, body, options)
    }
    const began = stage.clock.now()
    await stage.launch('lone')
    assert.equal((times[0] ?? 0) - began, 100)
    times.length = 0
    const start = stage.clock.now()
    const launches = Array.from({ length: 25 }, async (_, index) => {
      await stage.clock.sleep(80 * index)
      return await stage.provider.create(stage.claim(`c-${index}`))
    })
    await stage.settled(Promise.all(launches))
    assert.ok(times.length <= 4, `${times.length} writes`)
    assert.ok((times[0] ?? 0) - start >= 1000 && (times[0] ?? 0) - start < 1100)
    assert.equal(stage.replicas(), 26)
  })

  test('CAP-43 CAP-97 a caller that gives up hears it at once; the others, and its own Machine, are not lost', async () => {
    const stage = new Stage()
    stage.add()
    const end = new AbortController()
    const claims = ['a', 'b', 'c'].map((name) => stage.claim(name))
    const [a, b, c] = claims.map((claim, index) =>
      stage.provider.create(claim, index === 1 ? end.signal : undefined),
    )
    assert.ok(a && b && c)
    await stage.clock.advance(50)
    end.abort(new Error('enough'))
    await assert.rejects(b, /enough/)
    assert.deepEqual(await outcomes(stage, [a, c]), ['bound', 'bound'])
    await stage.clock.advance(2000)
    assert.equal(stage.boundTo('b').length, 1)
    const [, second] = claims
    assert.ok(second)
    await stage.settled(stage.provider.create(second))
    assert.equal(stage.replicas(), 3)
    assert.equal(stage.machines().length, 3)
  })

  test('CAP-58 trap 2 one free Machine and two launches at once: two Machines', async () => {
    const stage = new Stage()
    stage.add({ spec: { replicas: 1 } })
    await stage.clock.advance(5000)
    const other = stage.newProvider(stage.kube)
    const claims = ['a', 'b'].map((name) => stage.claim(name))
    const [one, two] = claims
    assert.ok(one && two)
    const told = await outcomes(stage, [stage.provider.create(one), other.create(two)])
    assert.deepEqual(told, ['bound', 'bound'])
    assert.equal(new Set([...stage.boundTo('a'), ...stage.boundTo('b')]).size, 2)
    assert.equal(stage.replicas(), 2)
  })

  test('CAP-92 a Machine that changes twice while it is bound is bound; a third time the claim hears it', async () => {
    const conflict = new KubeError('conflict', 409, 'the object has been modified')
    for (const [times, expected] of [
      [2, /^bound$/],
      [3, /modified/],
    ] as const) {
      const stage = new Stage()
      stage.add({ spec: { replicas: 1 } })
      await stage.clock.advance(5000)
      for (let i = 0; i < times; i++)
        stage.kube.failures.push({ verb: 'patch', plural: 'machines', error: conflict })
      const [told] = await outcomes(stage, [stage.provider.create(stage.claim('a'))])
      assert.match(told ?? '', expected)
      assert.equal(stage.replicas(), 1)
    }
  })

  test('CAP-2 CAP-3 CAP-22 CAP-23 what keeps a claim from a Machine is told with its name', async () => {
    const stage = new Stage()
    stage.add({ annotations: { [names.maxSize]: '0' } })
    const claim = stage.claim('a')
    const withClass = (name: string) => ({
      ...claim,
      spec: { ...claim.spec, nodeClassRef: { ...claim.spec.nodeClassRef, name } },
    })
    const kindOf = async (asked: NodeClaim) =>
      await stage.settled(
        stage.provider.create(asked).catch((error: unknown) => {
          assert.ok(isProviderError(error))
          assert.match(error.message, /NodeClaim a/)
          return error.kind
        }),
      )
    assert.equal(await kindOf(withClass('missing')), 'insufficientCapacity')
    assert.equal(await kindOf(withClass('')), 'other')
    assert.equal(await kindOf(claim), 'insufficientCapacity')
    stage.add()
    assert.equal(await kindOf(stage.claim('a', { cpu: '64' })), 'insufficientCapacity')
    assert.equal(stage.scalings(), 0)
  })

  test('trap 10 the most replicas hold for claims that come together', async () => {
    const stage = new Stage()
    stage.add({ name: 'md-0', annotations: { [names.maxSize]: '2' } })
    stage.add({ name: 'md-1', annotations: { [names.maxSize]: '1' } })
    const claims = ['a', 'b', 'c', 'd'].map((name) => stage.claim(name))
    const told = await outcomes(
      stage,
      claims.map((claim) => stage.provider.create(claim)),
    )
    assert.equal(told.filter((each) => each === 'bound').length, 3)
    assert.match(told.find((each) => each !== 'bound') ?? '', /at most/)
    assert.deepEqual([stage.replicas('md-0'), stage.replicas('md-1')], [2, 1])
  })

  test('a MachineDeployment that is paused after it was chosen is not scaled', async () => {
    const stage = new Stage()
    stage.add()
    const pending = stage.provider.create(stage.claim('a'))
    await stage.clock.advance(50)
    await stage.kube.patch(
      hubKinds.machineDeployment,
      { namespace: 'default', name: 'md-0' },
      { spec: { paused: true } },
    )
    const [told] = await outcomes(stage, [pending])
    assert.match(told ?? '', /md-0: it is paused/)
    assert.equal(stage.replicas(), 0)
  })

  test('trap 3 Machines that are born with the label of members belong to nobody', async () => {
    const stage = new Stage()
    stage.add({ template: { metadata: { labels: { [names.member]: '' } } } })
    const patch = stage.kube.patch.bind(stage.kube)
    stage.kube.cache(hubKinds.machine).onChange(({ kind, object }) => {
      const label = { metadata: { labels: { [names.member]: '' } } }
      if (kind === 'added')
        void patch(hubKinds.machine, { namespace: 'default', name: object.metadata.name }, label)
    })
    await stage.launch('a')
    assert.equal(stage.replicas(), 1)
    assert.equal(stage.boundTo('a').length, 1)
  })

  test('a Machine that fails for good makes its claim be planned anew', async () => {
    const stage = new Stage()
    stage.add()
    stage.delays.providerMs = 600_000
    const pending = stage.provider.create(stage.claim('a'))
    await stage.clock.advance(2000)
    await stage.kube.patch(
      hubKinds.machine,
      { namespace: 'default', name: 'md-0-0001' },
      { status: { phase: 'Failed', failureReason: 'CreateError', failureMessage: 'no quota' } },
    )
    await assert.rejects(stage.settled(pending), (error) => {
      assert.ok(isProviderError(error, 'insufficientCapacity'))
      assert.match(error.message, /Machine default\/md-0-0001 has failed: no quota/)
      return true
    })
  })

  test('CAP-94 a Machine with the provider ID of another one is neither taken for a node nor deleted', async () => {
    const stage = new Stage()
    stage.add()
    stage.kube.put(hubKinds.machine, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Machine',
      metadata: { name: 'of-others', namespace: 'default', labels: { [names.deploymentName]: 'other' } },
    })
    await stage.clock.advance(2000)
    const key = { namespace: 'default', name: 'of-others' }
    await stage.kube.patch(hubKinds.machine, key, { spec: { providerID: 'test:///md-0-0001' } })
    const claim = stage.claim('a')
    const [launched] = await outcomes(stage, [stage.provider.create(claim)])
    const words = /provider ID test:\/\/\/md-0-0001 is that of default\/md-0-0001 and default\/of-others/
    assert.match(launched ?? '', words)
    const [deleted] = await outcomes(stage, [stage.provider.delete(claim)])
    assert.match(deleted ?? '', words)
    assert.equal(
      stage.machines().filter(({ metadata }) => metadata.deletionTimestamp === undefined).length,
      2,
    )
    assert.equal(stage.replicas(), 1)
  })

  test('a claim that comes while a step fails is served by the next one', async () => {
    const stage = new Stage()
    stage.add()
    const get = stage.kube.get.bind(stage.kube)
    let isBroken = true
    stage.kube.get = async (type, key) => {
      if (type.plural !== 'machinedeployments' || !isBroken) return await get(type, key)
      isBroken = false
      await stage.clock.sleep(500)
      throw new KubeError('server', 500, 'out of order')
    }
    const first = stage.provider.create(stage.claim('a'))
    const told = outcomes(stage, [first])
    await stage.clock.advance(300)
    const second = outcomes(stage, [stage.provider.create(stage.claim('b'))])
    assert.match((await told)[0] ?? '', /out of order/)
    assert.deepEqual(await second, ['bound'])
    assert.equal(stage.replicas(), 1)
  })
})
