import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { type Fate, Field, seconds } from './field.test-support.ts'

const asPlanned = { c: { small: 8 }, m: { large: 8 } }
const gate = (plannedPlacement: boolean | 'auto') => ({
  featureGates: { ...defaultSettings.featureGates, plannedPlacement },
})
/** Keeps new nodes closed. */
const noRegistration = (method: string, path: string): Fate =>
  method === 'PATCH' && path.startsWith('/api/v1/nodes/') ? 'error' : 'pass'
const noNomination = (method: string, path: string): Fate =>
  method === 'PATCH' && path.includes('/pods/') ? 'error' : 'pass'

function familyOf(field: Field, node: string): string | undefined {
  const found = field.nodes().find(({ metadata }) => metadata.name === node)
  return found?.metadata.labels?.['karpenter.kwok.sh/instance-family']
}

/** How many pods are nominated for each family of nodes. */
function nominated(field: Field): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const name of field.unbound) {
    const family = familyOf(field, field.nominatedNode(name)) ?? 'none'
    counts[family] = (counts[family] ?? 0) + 1
  }
  return counts
}

/** The sixteen pods wait, nominated, for two nodes that may not register. */
async function aClosedField(t: Parameters<typeof Field.open>[0]): Promise<Field> {
  const field = await Field.open(t)
  field.fate = noRegistration
  await field.launchSixteen()
  assert.ok(await field.until(() => nominated(field)['c'] === 8 && nominated(field)['m'] === 8, 5 * seconds))
  return field
}

describe('pods are steered to the nodes they are planned for', () => {
  test('PLA-1 sixteen pods of two shapes run where they were planned, on two nodes', async (t) => {
    const field = await Field.open(t)
    await field.launchSixteen()
    assert.ok(await field.until(() => field.isAllBound, 30 * seconds))
    assert.deepEqual(field.placement, asPlanned)
    await field.pass(30 * seconds)
    assert.equal(field.claims().length, 2)
    assert.equal(await field.metric('pods_nominations_total'), 16)
    assert.equal(await field.metric('pods_nominations_outcomes_total', { outcome: 'honoured' }), 16)
    assert.equal(await field.metric('pods_nominations_outcomes_total'), 16)
    assert.deepEqual(field.said('pod bound elsewhere'), [])
  })

  test('PLA-2 with the gate off all of them run on the nodes of the first decision', async (t) => {
    const field = await Field.open(t, { settings: gate(false) })
    await field.start()
    field.sixteen()
    assert.ok(await field.until(() => field.isAllBound && field.claims().length > 0, 30 * seconds))
    await field.pass(30 * seconds)
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
    assert.equal(field.said('computed new nodeclaim(s)')[0]?.fields['placement'], 'free')
    assert.deepEqual(field.nominations, [])
  })

  test('PLA-3 with a server before 1.35 no pod is nominated, unless the gate is forced', async (t) => {
    const old = await Field.open(t, { gitVersion: 'v1.34.9' })
    await old.start()
    old.sixteen()
    assert.ok(await old.until(() => old.isAllBound, 60 * seconds))
    assert.deepEqual(old.nominations, [])
    const forced = await Field.open(t, { gitVersion: 'v1.34.9', settings: gate(true) })
    await forced.launchSixteen()
    assert.ok(await forced.until(() => forced.isAllBound, 30 * seconds))
    assert.equal(forced.nominations.length, 16)
  })

  test('with compatibility=karpenter decisions are first fit and no pod is nominated', async (t) => {
    const field = await Field.open(t, { settings: { ...gate(true), compatibility: 'karpenter' } })
    await field.start()
    field.sixteen()
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    assert.deepEqual(field.nominations, [])
    assert.ok(
      field.claims().every(({ metadata }) => metadata.annotations?.['tenon.sh/planned-pods'] === undefined),
    )
  })

  test('PLA-5 for a pod that is deleted before its node registers nothing is written', async (t) => {
    const field = await Field.open(t, { nodeRegistrationDelay: '5s' })
    await field.launchSixteen()
    field.world.cluster.server.local.delete(kinds.pod, 'default', 'small-3', { gracePeriodSeconds: 0 })
    assert.ok(await field.until(() => field.isAllBound, 30 * seconds))
    assert.equal(field.nominations.length, 15)
    assert.ok(field.nominations.every(({ pod }) => pod !== 'small-3'))
    assert.deepEqual(field.said('Reconciler error'), [])
  })

  test('PLA-6 a pod nominated by preemption is left alone', async (t) => {
    const field = await Field.open(t)
    await field.start()
    field.node('old', '1')
    field.pods('low', 1, '1', '1Gi', { nodeName: 'old', terminationGracePeriodSeconds: 60 })
    field.world.create(
      {
        ...kinds.pod,
        group: 'scheduling.k8s.io',
        kind: 'PriorityClass',
        plural: 'priorityclasses',
        namespaced: false,
      },
      {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name: 'high' },
        value: 1000,
      } as never,
    )
    field.pods('vip', 1, '1', '1Gi', { priorityClassName: 'high' })
    assert.ok(await field.until(() => field.nominatedNode('vip-0') === 'old', 5 * seconds))
    await field.pass(30 * seconds)
    assert.equal(field.nominatedNode('vip-0'), 'old')
    assert.deepEqual(field.nominations, [])
    assert.deepEqual(field.claims(), [])
  })

  test('PLA-11 a nomination that another controller made for a node that exists stays', async (t) => {
    const field = await Field.open(t, { nodeRegistrationDelay: '5s' })
    field.node('reserved', '8', [{ key: 'queue', effect: 'NoSchedule' }])
    await field.launchSixteen()
    field.nominate('small-3', 'reserved')
    assert.ok(await field.until(() => field.unbound.length <= 1, 30 * seconds))
    await field.pass(seconds)
    assert.ok(field.nominations.every(({ pod }) => pod !== 'small-3'))
    assert.equal(field.nominations.length, 15)
  })

  test('PLA-7 the pods of a node that dies are provided for within one batch', async (t) => {
    const field = await Field.open(t)
    const { local } = field.world.cluster.server
    // Nodes that have registered do not take pods before their cloud has set them up.
    local.subscribe(kinds.node, {
      added: ({ metadata, spec }) => {
        const taint = { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' }
        local.patch(kinds.node, undefined, metadata.name, {
          spec: { taints: [...(spec?.taints ?? []), taint] },
        })
      },
    })
    await field.launchSixteen()
    const areRegistered = () =>
      field.nodes().length === 2 && field.nodes().every(({ metadata }) => field.isRegistered(metadata.name))
    assert.ok(await field.until(areRegistered, 10 * seconds))
    assert.deepEqual(nominated(field), { c: 8, m: 8 })
    const dead =
      field.nodes().find(({ metadata }) => familyOf(field, metadata.name) === 'm')?.metadata.name ?? ''
    local.delete(kinds.node, undefined, dead)
    const isReplaced = () =>
      field
        .claims()
        .some(
          ({ status, metadata }) =>
            status?.nodeName !== dead &&
            metadata.deletionTimestamp === undefined &&
            field.nodes().length > 0 &&
            metadata.annotations !== undefined &&
            !before.has(metadata.name),
        )
    const before = new Set(field.claims().map(({ metadata }) => metadata.name))
    // A batch is closed by a second of silence.
    assert.ok(await field.until(isReplaced, 3 * seconds))
    await field.pass(5 * seconds)
    assert.equal(field.said('computed new nodeclaim(s)').length, 2)
    assert.equal(field.claims().filter(({ metadata }) => metadata.deletionTimestamp === undefined).length, 2)
    assert.deepEqual(nominated(field), { c: 8, m: 8 })
  })

  test('PLA-8 after a restart before the nodes register, placement completes on the same nodes', async (t) => {
    const field = await aClosedField(t)
    await field.restart()
    await field.pass(20 * seconds)
    field.fate = () => 'pass'
    assert.ok(await field.until(() => field.isAllBound, 120 * seconds))
    assert.deepEqual(field.placement, asPlanned)
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
  })

  test('PLA-8 after a restart before anything was nominated it completes there, too', async (t) => {
    const field = await Field.open(t)
    field.fate = (method, path) =>
      noRegistration(method, path) === 'error' ? 'error' : noNomination(method, path)
    await field.launchSixteen()
    await field.pass(3 * seconds)
    assert.deepEqual(nominated(field), { none: 16 })
    await field.restart()
    field.fate = () => 'pass'
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    assert.deepEqual(field.placement, asPlanned)
    await field.pass(20 * seconds)
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
  })

  test('PLA-9 without the right to nominate it is said once, and provisioning goes on', async (t) => {
    const field = await Field.open(t)
    let requests = 0
    field.fate = (method, path) => {
      if (noNomination(method, path) === 'pass') return 'pass'
      requests++
      return 'forbidden'
    }
    await field.start()
    field.sixteen()
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    const before = requests
    field.pods('more', 12, '1200m', '2Gi')
    field.pods('others', 3, '1', '12Gi')
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    assert.equal(requests, before)
    const warnings = field.lines.filter(({ level }) => level === 'warn')
    assert.deepEqual(
      warnings.map(({ message }) => message.split(':')[0]),
      ['cannot nominate pods'],
    )
    assert.equal(field.said('computed new nodeclaim(s)').at(-1)?.fields['placement'], 'free')
    assert.deepEqual(field.said('Reconciler error'), [])
  })

  test('PLA-10 a nomination that the scheduler clears while the node is closed is set again', async (t) => {
    const field = await aClosedField(t)
    const node = field.nominatedNode('large-5')
    field.nominate('large-5', null)
    assert.equal(field.nominatedNode('large-5'), '')
    assert.ok(await field.until(() => field.nominatedNode('large-5') === node, seconds))
    assert.equal(await field.metric('pods_nominations_total'), 16)
  })

  test('a pod bound elsewhere leaves its place to one that is alike and waits for the node it took', async (t) => {
    const field = await Field.open(t)
    field.fate = noRegistration
    await field.start()
    field.pods('many', 12, '1400m', '2Gi')
    field.pods('other', 2, '900m', '1Gi')
    const isTold = () => field.unbound.every((name) => field.nominatedNode(name) !== '')
    assert.ok(await field.until(() => field.claims().length > 1 && isTold(), 10 * seconds))
    const placesOn = (node: string) => field.unbound.filter((name) => field.nominatedNode(name) === node)
    const left = field.nominatedNode('many-0')
    const taken = field.nominatedNode(
      field.unbound.find((name) => name.startsWith('many') && field.nominatedNode(name) !== left) ?? '',
    )
    const before = [placesOn(left).length, placesOn(taken).length]
    field.bind('many-0', taken)
    const isTraded = () =>
      placesOn(left).length === before[0] && placesOn(taken).length === (before[1] ?? 0) - 1
    assert.ok(
      await field.until(isTraded, 2 * seconds),
      `${placesOn(left).join()} | ${placesOn(taken).join()}`,
    )
  })
})

describe('what nominations are not made for', () => {
  test('pods that are all alike, wherever they go', async (t) => {
    const field = await Field.open(t)
    await field.start()
    field.pods('same', 30, '900m', '1Gi')
    assert.ok(await field.until(() => field.isAllBound, 30 * seconds))
    assert.ok(field.claims().length > 1)
    assert.deepEqual(field.nominations, [])
  })

  test('pods that all go to the only node', async (t) => {
    const field = await Field.open(t)
    await field.start()
    field.pods('one', 2, '900m', '1Gi')
    field.pods('other', 2, '500m', '2Gi')
    assert.ok(await field.until(() => field.isAllBound, 30 * seconds))
    assert.equal(field.claims().length, 1)
    assert.deepEqual(field.nominations, [])
  })
})

describe('the plan', () => {
  test('is kept while its nodes are on their way: later passes launch nothing', async (t) => {
    const field = await Field.open(t, { nodeRegistrationDelay: '45s' })
    await field.start()
    field.sixteen()
    await field.pass(40 * seconds)
    assert.ok(field.said('found provisionable pod(s)').length >= 4)
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
  })

  test('of more pods than can be nominated is told to nobody, and holds wherever they land', async (t) => {
    const field = await Field.open(t, { settings: { maxNominations: 15 } })
    await field.start()
    field.sixteen()
    assert.ok(await field.until(() => field.isAllBound, 60 * seconds))
    assert.deepEqual(field.nominations, [])
    assert.equal(field.said('computed new nodeclaim(s)').length, 1)
    assert.ok(
      field.claims().every(({ metadata }) => !('tenon.sh/planned-pods' in (metadata.annotations ?? {}))),
    )
  })

  test('is made anew within a batch for pods whose claim is deleted', async (t) => {
    const field = await Field.open(t, { nodeRegistrationDelay: '60s' })
    await field.launchSixteen()
    const [first] = field.claims()
    const kept = field.claims()[1]?.metadata.name
    field.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, first?.metadata.name ?? '')
    const isReplaced = () =>
      field.claims().filter(({ metadata }) => metadata.name !== first?.metadata.name).length === 2
    assert.ok(await field.until(isReplaced, 3 * seconds))
    assert.ok(field.claims().some(({ metadata }) => metadata.name === kept))
  })

  test('holds up the registration of a node by no more than its bound', async (t) => {
    const field = await Field.open(t)
    field.fate = noNomination
    await field.launchSixteen()
    assert.ok(await field.until(() => field.nodes().length === 2, seconds))
    const areRegistered = () => field.nodes().every(({ metadata }) => field.isRegistered(metadata.name))
    await field.pass(4 * seconds)
    assert.ok(!areRegistered())
    assert.ok(await field.until(areRegistered, 2 * seconds))
  })
})
