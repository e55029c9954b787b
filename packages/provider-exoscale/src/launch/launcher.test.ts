import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { kinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { parse } from 'smol-toml'
import { clusterId, idOf, templateId } from '../testing/fake-cloud.test-support.ts'
import { aClaim, aNodeClass, aPool, aWorld, typesIn, type World } from '../testing/world.test-support.ts'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'

const instances = (world: World) => [...world.cloud.instances.values()]
const posts = (world: World) => world.cloud.callsTo('POST', /^\/instance$/)
const tokens = (world: World) => world.kube.all(kinds.secret)

function ready(env: Record<string, string> = {}, ...nodeClass: Parameters<typeof aNodeClass>): World {
  const world = aWorld(env)
  world.kube.put(exoscaleNodeClassKind, aNodeClass(...nodeClass))
  return world
}

function chosen(world: World): string | undefined {
  const id = instances(world)[0]?.['instance-type']?.id
  const type = world.cloud.types.find((candidate) => candidate.id === id)
  return type && `${type.family}.${type.size}`
}

/** The parser's tables have no prototype. */
const plain = (table: unknown): unknown => JSON.parse(JSON.stringify(table))

describe('launch', () => {
  it('EXO-45 of several types in any order the cheapest is created', async () => {
    const world = ready()
    await world.settle(world.provider.create(aClaim()))
    assert.equal(chosen(world), 'standard.small')
  })

  it('EXO-46 a single type is used even without a price', async () => {
    const world = ready()
    await world.settle(world.provider.create(aClaim('a', { requirements: [typesIn('gpurtx6000pro.small')] })))
    assert.equal(chosen(world), 'gpurtx6000pro.small')
  })

  it('EXO-43 an unpriced type is never preferred over a priced one', async () => {
    const world = ready()
    const requirements = [typesIn('gpurtx6000pro.small', 'gpua30.small')]
    await world.settle(world.provider.create(aClaim('a', { requirements })))
    assert.equal(chosen(world), 'gpua30.small')
  })

  it('EXO-47 EXO-128 without a type requirement any fitting type will do, but none that is excluded', async () => {
    const world = ready()
    const key = 'node.kubernetes.io/instance-type'
    const requirements = [{ key, operator: 'NotIn', values: ['standard.small'] } as const]
    const resources = { requests: { cpu: '1', memory: '1Gi', pods: '1' } }
    await world.settle(world.provider.create(aClaim('a', { requirements, resources })))
    assert.equal(chosen(world), 'standard.medium')
    const none = aClaim('b', { requirements: [typesIn('standard.unknown')] })
    await assert.rejects(world.settle(world.provider.create(none)), { kind: 'create' })
  })

  it('EXO-48 arm64 or windows fails before anything is made', async () => {
    for (const [key, value] of [
      ['kubernetes.io/arch', 'arm64'],
      ['kubernetes.io/os', 'windows'],
    ] as const) {
      const world = ready()
      const claim = aClaim('a', { requirements: [{ key, operator: 'In', values: [value] }] })
      await assert.rejects(world.settle(world.provider.create(claim)), {
        kind: 'create',
        message: new RegExp(key),
      })
      assert.equal(world.cloud.callsTo('POST', /./).length, 0)
    }
  })

  it('EXO-49 a full anti-affinity group is a shortage, EXO-50 seven members are not', async () => {
    const members = Array.from({ length: 8 }, (_, index) => ({ id: idOf(index) }))
    const full = aWorld()
    const group = full.cloud.addGroup('anti-affinity-group', 'spread', { instances: members })
    full.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { antiAffinityGroups: [group] }))
    await assert.rejects(full.settle(full.provider.create(aClaim())), {
      kind: 'insufficientCapacity',
      message: new RegExp(`${group} \\(spread\\).*8/8`),
    })
    assert.equal(posts(full).length, 0)
    full.cloud.groups['anti-affinity-group'].set(group, { id: group, instances: members.slice(1) })
    await full.settle(full.provider.create(aClaim()))
    assert.equal(posts(full).length, 1)
  })

  it('EXO-51 the request names prefix and claim, our labels only, and no empty lists', async () => {
    const world = ready({ EXOSCALE_COMPUTE_INSTANCE_PREFIX: 'karpenter-' })
    await world.settle(world.provider.create(aClaim()))
    const { 'user-data': _data, 'instance-type': _type, ...rest } = posts(world)[0]?.body ?? {}
    assert.deepEqual(rest, {
      name: 'karpenter-pool-abcde',
      template: { id: templateId },
      'disk-size': 50,
      labels: {
        'exoscale.com/managed-by': 'karpenter',
        'exoscale.com/cluster-id': clusterId,
        'exoscale.com/node-claim': 'pool-abcde',
        'exoscale.com/nodepool-name': 'pool',
      },
    })
  })

  it('EXO-52 a claim without a pool label gets no nodepool-name', async () => {
    const world = ready()
    const claim = aClaim()
    await world.settle(world.provider.create({ ...claim, metadata: { name: 'alone' } }))
    assert.equal(instances(world)[0]?.labels['exoscale.com/nodepool-name'], undefined)
  })

  it('EXO-53 a missing class is a shortage, one that is not ready is told as such', async () => {
    const world = aWorld()
    await assert.rejects(world.settle(world.provider.create(aClaim())), { kind: 'insufficientCapacity' })
    const base = aNodeClass().status?.conditions?.[0]
    assert.ok(base)
    const conditions = [{ ...base, status: 'False', message: 'no such group' } as const]
    world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { conditions }))
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      kind: 'nodeClassNotReady',
      message: /no such group/,
    })
    world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { conditions: [] }))
    await assert.rejects(world.settle(world.provider.create(aClaim())), { kind: 'other' })
  })

  it('EXO-54 private networks are attached in order, each waited for', async () => {
    const world = aWorld()
    const networks = ['a', 'b'].map((name) => world.cloud.addGroup('private-network', name))
    world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { privateNetworks: networks }))
    await world.settle(world.provider.create(aClaim()))
    assert.deepEqual(
      instances(world)[0]?.['private-networks'].map((network) => network.id),
      networks,
    )
    const attaches = world.cloud.callsTo('PUT', /:attach/)
    const between = world.cloud.calls.slice(world.cloud.calls.indexOf(attaches[0] as never))
    assert.match(between[1]?.path ?? '', /operation/)
  })

  it('EXO-55 when the second network fails, the instance is deleted and creation fails', async () => {
    const world = aWorld()
    const network = world.cloud.addGroup('private-network', 'a')
    const missing = '99999999-0000-4000-8000-000000000000'
    world.kube.put(exoscaleNodeClassKind, aNodeClass(undefined, { privateNetworks: [network, missing] }))
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      kind: 'create',
      reason: 'InstanceCreationFailed',
    })
    assert.equal(instances(world)[0]?.state, 'destroying')
  })

  it('EXO-56 a refused token stops the launch', async () => {
    const world = ready()
    world.kube.failures.push({
      verb: 'create',
      plural: 'secrets',
      error: new KubeError('forbidden', 403, 'no'),
    })
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      reason: 'BootstrapTokenCreationFailed',
    })
    assert.equal(posts(world).length, 0)
  })

  it('a Node that the cluster does not take blames no instance type, and the next try finds the instance', async () => {
    const world = ready()
    const claim = aClaim()
    const error = new KubeError('transport', 0, 'no answer')
    world.kube.failures.push({ verb: 'create', plural: 'nodes', error })
    await assert.rejects(world.settle(world.provider.create(claim)), {
      reason: 'NodeCreationFailed',
      blames: { what: 'cloud' },
    })
    await world.settle(world.provider.create(claim))
    assert.equal(posts(world).length, 1)
  })

  it('EXO-57 a refused POST is told, and its token removed', async () => {
    for (const status of [409, 422, 500]) {
      const world = ready()
      world.cloud.disturb('POST', /^\/instance$/, { status, body: '{"message":"nope"}' })
      await assert.rejects(world.settle(world.provider.create(aClaim())), {
        kind: 'create',
        reason: 'InstanceCreationFailed',
        message: /nope/,
      })
      assert.deepEqual(tokens(world), [])
    }
  })

  it('EXO-58 EXO-129 the result tells provider ID, image and the real labels', async () => {
    const world = ready()
    const requirements = [{ key: 'exoscale.com/instance-family', operator: 'In', values: ['cpu'] } as const]
    const instance = await world.settle(world.provider.create(aClaim('a', { requirements })))
    assert.equal(instance.providerID, `exoscale://${instances(world)[0]?.id}`)
    assert.equal(instance.imageID, templateId)
    assert.deepEqual(instance.labels, {
      'topology.kubernetes.io/region': 'ch-gva-2',
      'topology.kubernetes.io/zone': 'ch-gva-2',
      'node.kubernetes.io/instance-type': 'cpu.extra-large',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
      'karpenter.sh/capacity-type': 'on-demand',
      'exoscale.com/instance-family': 'cpu',
      'exoscale.com/instance-size': 'extra-large',
    })
    assert.equal(instance.capacity['ephemeral-storage'], '50Gi')
    assert.deepEqual([instance.allocatable.cpu, instance.allocatable['ephemeral-storage']], ['7700m', '46Gi'])
  })

  it('EXO-59 a Node named like the instance waits for the kubelet', async () => {
    const world = ready()
    const instance = await world.settle(world.provider.create(aClaim()))
    const [node] = world.kube.all(kinds.node)
    assert.equal(node?.metadata.name, 'pool-abcde')
    assert.equal(node?.spec?.providerID, instance.providerID)
    assert.deepEqual(node?.spec?.taints, [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }])
    assert.equal(`exoscale://${node?.status?.nodeInfo?.systemUUID}`, instance.providerID)
    assert.deepEqual(
      node?.status?.addresses?.map(({ type }) => type),
      ['Hostname', 'ExternalIP', 'InternalIP'],
    )
  })

  it('EXO-60 an instance without a public address yet is known by its host name alone', async () => {
    const world = ready()
    world.cloud.isPublicIpLate = true
    await world.settle(world.provider.create(aClaim()))
    assert.deepEqual(world.kube.all(kinds.node)[0]?.status?.addresses, [
      { type: 'Hostname', address: 'pool-abcde' },
    ])
  })

  it('EXO-67 startup taints are not told to the guest, and neither is the unregistered one', async () => {
    const world = ready()
    const startupTaints = [
      { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
      { key: 'example.com/agent', effect: 'NoSchedule' },
    ] as const
    await world.settle(world.provider.create(aClaim('a', { startupTaints })))
    const text = gunzipSync(Buffer.from(String(posts(world)[0]?.body?.['user-data']), 'base64')).toString()
    assert.doesNotMatch(text, /node-taints|unregistered|example\.com/)
  })

  it('EXO-73 the token is a Secret of the form that the control plane takes, with the least rights', async () => {
    const world = ready()
    await world.settle(world.provider.create(aClaim()))
    const [secret] = tokens(world)
    assert.ok(secret)
    const data = Object.fromEntries(
      Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    )
    const { 'token-id': id = '', 'token-secret': password = '', description = '', ...fixed } = data
    assert.match(`${id}.${password}`, /^[a-z0-9]{6}\.[a-z0-9]{16}$/)
    assert.match(description, /pool-abcde/)
    assert.deepEqual(fixed, {
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': 'system:bootstrappers:worker,system:bootstrappers:ingress',
      expiration: '2026-01-01T00:10:00Z',
    })
    assert.equal(secret.type, 'bootstrap.kubernetes.io/token')
    const { name, namespace, labels, annotations } = secret.metadata
    assert.deepEqual([name, namespace], [`bootstrap-token-${id}`, 'kube-system'])
    assert.deepEqual(labels, { 'exoscale.com/token-provider': 'karpenter-exoscale' })
    assert.deepEqual(annotations, {
      'exoscale.com/bootstrap-token': 'pool-abcde',
      'exoscale.com/token-created': '2026-01-01T00:00:00Z',
    })
  })

  it('EXO-61 a lost reply makes no second instance', async () => {
    const world = ready()
    world.cloud.disturb('POST', /^\/instance$/, 'lostReply')
    await world.settle(world.provider.create(aClaim()))
    assert.equal(instances(world).length, 1)
    await world.settle(world.provider.create(aClaim()))
    assert.equal(posts(world).length, 1)
    assert.equal(tokens(world).length, 1, 'the instance still needs its token')
  })

  it('EXO-61 a crash between instance and answer is picked up by the next attempt', async () => {
    const world = ready()
    const stopping = new AbortController()
    const first = world.provider.create(aClaim(), stopping.signal)
    await world.clock.advanceUntil(() => posts(world).length === 1, 60_000)
    stopping.abort(new Error('stopped'))
    await assert.rejects(world.settle(first), { message: 'stopped' })
    for (const instance of instances(world)) instance.state = 'running'
    const instance = await world.settle(world.provider.create(aClaim()))
    assert.equal(instance.providerID, `exoscale://${instances(world)[0]?.id}`)
    assert.equal(instances(world).length, 1)
  })

  it('of two instances of one claim the older is kept', async () => {
    const world = ready()
    await world.settle(world.provider.create(aClaim()))
    const [first] = instances(world)
    assert.ok(first)
    world.cloud.instances.set(idOf(1), { ...first, id: idOf(1), 'created-at': '2027-01-01T00:00:00Z' })
    const instance = await world.settle(world.provider.create(aClaim()))
    assert.equal(instance.providerID, `exoscale://${first.id}`)
    assert.equal(world.cloud.instances.get(idOf(1))?.state, 'destroying')
  })

  it('EXO-62 an unavailable type is a shortage and avoided for minutes', async () => {
    const world = ready()
    world.cloud.creationFailures = [{ reason: 'unavailable', message: 'no host' }]
    await assert.rejects(world.settle(world.provider.create(aClaim())), { kind: 'insufficientCapacity' })
    assert.deepEqual(tokens(world), [])
    const offered = async (name: string) => {
      const types = await world.settle(world.provider.getInstanceTypes(aPool()))
      return types.find((type) => type.name === name)?.offerings[0]?.available
    }
    assert.deepEqual([await offered('standard.small'), await offered('standard.medium')], [false, true])
    await world.settle(world.provider.create(aClaim('pool-other')))
    const made = instances(world).find((instance) => instance.state === 'running')
    const medium = world.cloud.types.find(({ family, size }) => family === 'standard' && size === 'medium')
    assert.equal(made?.['instance-type']?.id, medium?.id)
    await world.clock.advance(4 * 60_000)
    assert.equal(await offered('standard.small'), true)
  })

  it('EXO-121 a used-up quota is a shortage, an unlimited one is not', async () => {
    const world = ready()
    world.cloud.quotas.set('instance', { usage: 20, limit: 20 })
    world.cloud.disturb('POST', /^\/instance$/, { status: 403 }, { status: 409 })
    await assert.rejects(world.settle(world.provider.create(aClaim())), {
      kind: 'insufficientCapacity',
      message: /quota/,
    })
    await world.clock.advance(4 * 60_000)
    world.cloud.quotas.set('instance', { usage: 20, limit: -1 })
    await assert.rejects(world.settle(world.provider.create(aClaim())), { kind: 'create' })
  })

  it('EXO-130 an operation without reference makes one instance in the end', async () => {
    const world = ready()
    world.cloud.isReferenceOmitted = true
    await world.settle(world.provider.create(aClaim()))
    await world.settle(world.provider.create(aClaim()))
    assert.equal(posts(world).length, 1)
  })

  it('EXO-131 an existing Node of this instance is fine, one of a dead instance is replaced', async () => {
    const world = ready()
    const claim = aClaim()
    const first = await world.settle(world.provider.create(claim))
    await world.settle(world.provider.create(claim))
    world.cloud.instances.clear()
    const second = await world.settle(world.provider.create(claim))
    assert.notEqual(second.providerID, first.providerID)
    assert.equal(world.kube.all(kinds.node)[0]?.spec?.providerID, second.providerID)
  })

  it('EXO-72 user data that is too long fails before the POST', async () => {
    const world = ready()
    const claim = aClaim()
    const labels: Record<string, string> = {}
    for (let index = 0; index < 4000; index++) labels[`l${index}`] = `${Math.sin(index)}`.slice(2)
    const big = { ...claim, metadata: { ...claim.metadata, labels } }
    await assert.rejects(world.settle(world.provider.create(big)), {
      kind: 'create',
      message: /user data is \d+ characters/,
    })
    assert.equal(posts(world).length, 0)
    assert.deepEqual(tokens(world), [])
  })

  it('EXO-63 the guest finds what it needs to join, and a token that exists', async () => {
    const world = ready()
    await world.settle(world.provider.create(aClaim('a', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] })))
    const text = gunzipSync(Buffer.from(String(posts(world)[0]?.body?.['user-data']), 'base64')).toString()
    const { kubernetes } = (plain(parse(text)) as { settings: { kubernetes: Record<string, unknown> } })
      .settings
    const [secret] = tokens(world)
    const field = (name: string) => Buffer.from(secret?.data?.[name] ?? '', 'base64').toString()
    assert.equal(kubernetes['bootstrap-token'], `${field('token-id')}.${field('token-secret')}`)
    assert.equal(kubernetes['api-server'], 'https://cluster.example:6443')
    assert.equal(kubernetes['cloud-provider'], 'external')
    assert.equal(kubernetes['cluster-certificate'], Buffer.from('PEM').toString('base64'))
    assert.deepEqual(kubernetes['node-taints'], { gpu: ['true:NoSchedule'] })
    assert.match(secret?.metadata.name ?? '', /^bootstrap-token-[a-z0-9]{6}$/)
  })

  it('no message, event or label holds the API secret or the token', async () => {
    const world = ready()
    world.cloud.disturb('POST', /^\/instance$/, { status: 401, body: '{"message":"bad key"}' })
    const error: Error = await world.settle(world.provider.create(aClaim())).then(
      () => assert.fail('expected an error'),
      (reason: Error) => reason,
    )
    assert.match(error.message, /EXOSCALE_API_KEY/)
    assert.doesNotMatch(`${error.message}${error.stack}${JSON.stringify(world.kube.events)}`, /s3cret-value/)
  })
})
