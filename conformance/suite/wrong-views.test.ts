/** Views of pods that are late or wrong, and pods that others count on a node for, on the real control plane. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { karpenterKinds, kinds, labels, type Pod, type ResourceType } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { DocumentStream, type HttpResponse, oneChunk, SystemClock, type Transport } from '@tenon/runtime'
import { WrongViews } from '@tenon/world'
import { barePod, deployment, proofKinds } from '../src/scheduling-proof/objects.ts'
import { sharedControlPlane } from './cluster.ts'
import { DrainStand } from './drain-stand.ts'

const seconds = 1000
const onePerNode = { cpu: '1500m', memory: '64Mi' }
const calm = 6
const hold = 'example.com/hold'
const priorityClass: ResourceType = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
}

/** Hands over the rows of watches as documents, as wrong views want them, and refuses lists as streams. */
function withRows(inner: Transport): Transport {
  return {
    send: async (request, signal) => {
      if (request.path.includes('sendInitialEvents=true')) return refused()
      const response = await inner.send(request, signal)
      if (!request.path.includes('watch=true') || response.status !== 200) return response
      return {
        ...response,
        body: new DocumentStream(rowsOf(response.body), (row) => `${JSON.stringify(row)}\n`),
      }
    },
  }
}

function refused(): HttpResponse {
  const status = {
    kind: 'Status',
    status: 'Failure',
    reason: 'Invalid',
    code: 422,
    message: 'no streams here',
  }
  return { status: 422, headers: {}, body: oneChunk(JSON.stringify(status)) }
}

async function* rowsOf(body: HttpResponse['body']): AsyncGenerator<readonly object[]> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    const rows = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as object)
    if (rows.length > 0) yield rows
  }
}

describe('views of pods that are wrong', () => {
  const views = new WrongViews()
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: DrainStand

  const nodeNames = () =>
    stand.operator.caches.nodes
      .list()
      .map(({ metadata }) => metadata.name)
      .toSorted()
  const podUids = (app: string) => running(app).map(({ metadata }) => metadata.uid)
  const running = (app: string): readonly Pod[] =>
    stand.pods
      .list()
      .filter(({ metadata, status }) => metadata.labels?.['app'] === app && status?.phase === 'Running')
      .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const wait = (isDone: () => boolean, ms: number) => stand.wait(isDone, stand.clock.now() + ms)

  /** Passes time in which no node and no pod goes, none comes, and nobody asks for the end of a pod. */
  async function assertUntouched(ms: number): Promise<void> {
    const seen = [nodeNames(), podUids('calm')]
    await stand.clock.sleep(ms)
    assert.deepEqual([nodeNames(), podUids('calm')], seen)
    assert.deepEqual(stand.requests, [])
  }

  before(async () => {
    controlPlane = await sharedControlPlane()
    stand = await DrainStand.start(controlPlane.kubeconfigPath, (transport) =>
      views.path(withRows(transport), new SystemClock()),
    )
    await createPool(stand)
    await createDeployment('calm', calm)
    assert.ok(await wait(() => running('calm').length === calm, 60 * seconds))
    assert.equal(nodeNames().length, calm)
    // Until every node may be disrupted.
    await stand.clock.sleep(10 * seconds)
  })

  after(async () => {
    views.stopLying('pods')
    views.late('pods', 0)
    for (const app of ['calm', 'late'])
      await stand.client
        .delete(
          proofKinds.deployment,
          { namespace: 'default', name: app },
          { propagationPolicy: 'Background' },
        )
        .catch(ignoringGone)
    for (const name of ['low', 'high'])
      await stand.client.delete(kinds.pod, { namespace: 'default', name }).catch(ignoringGone)
    await stand.client.delete(priorityClass, { name: 'high' }).catch(ignoringGone)
    await stand.client.delete(karpenterKinds.nodePool, { name: 'views' }).catch(ignoringGone)
    await stand.clear()
    await stand.stop()
    await controlPlane.stop()
  })

  async function createDeployment(name: string, replicas: number): Promise<void> {
    const { type, object } = deployment(replicas, { namespace: 'default', name, requests: onePerNode })
    await stand.client.create(type, object)
  }

  for (const lie of ['empty', 'half', 'old'] as const)
    test(`RPB-42 lists of pods that are all ${lie} for 20 s cost no node and no pod`, async () => {
      views.lie('pods', lie)
      views.expire('pods')
      await assertUntouched(20 * seconds)
      views.stopLying('pods')
      await assertUntouched(5 * seconds)
    })

  test('RPB-42 DELETED events for pods that run cost no node and no pod', async () => {
    views.reportDeleted('pods', running('calm'))
    await assertUntouched(20 * seconds)
  })

  test('RPB-18 while victims of a preemption end, no node goes and none is launched', async () => {
    await stand.client.create(priorityClass, {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 1000,
    } as never)
    const pod = (name: string, metadata: object, spec: object) => {
      const { object } = barePod({ namespace: 'default', name, requests: onePerNode, spec })
      return stand.client.create(kinds.pod, {
        ...object,
        metadata: { ...object.metadata, ...metadata },
      } as never)
    }
    const find = (name: string) => stand.pods.get({ namespace: 'default', name })
    // Its kubelet takes its time to end it.
    await pod('low', { finalizers: [hold] }, {})
    assert.ok(await wait(() => find('low')?.status?.phase === 'Running', 60 * seconds))
    const node = find('low')?.spec.nodeName ?? ''
    const hostname = stand.operator.caches.nodes.get({ name: node })?.metadata.labels?.[labels.hostname]
    const [others, nodes] = [podUids('calm'), nodeNames()]
    await pod('high', {}, { priorityClassName: 'high', nodeSelector: { [labels.hostname]: hostname } })
    assert.ok(await wait(() => find('high')?.status?.nominatedNodeName === node, 30 * seconds))
    await stand.clock.sleep(30 * seconds)
    assert.deepEqual([podUids('calm'), nodeNames()], [others, nodes])
    await stand.client.patch(
      kinds.pod,
      { namespace: 'default', name: 'low' },
      { metadata: { finalizers: null } },
    )
    assert.ok(await wait(() => find('high')?.spec.nodeName === node, 30 * seconds))
    assert.deepEqual(nodeNames(), nodes)
  })

  test('RPB-1 pods that are shown 130 s late get a node each, and no verdict', {
    timeout: 330 * seconds,
  }, async () => {
    const count = nodeNames().length
    views.late('pods', 130 * seconds)
    await createDeployment('late', 9)
    assert.ok(await wait(() => running('late').length === 9, 200 * seconds), `${running('late').length} run`)
    await stand.clock.sleep(20 * seconds)
    assert.equal(new Set(running('late').map(({ spec }) => spec.nodeName)).size, 9)
    assert.equal(nodeNames().length, count + 9)
    const events = await stand.client.list<
      { readonly metadata: { readonly name: string }; readonly reason: string } & Pod
    >({
      ...kinds.pod,
      kind: 'Event',
      plural: 'events',
    } as never)
    assert.deepEqual(
      events.filter(({ reason }) => reason === 'NodeRefused' || reason === 'NodeUnused'),
      [],
    )
  })
})

const ignoringGone = (error: unknown): void => {
  if (!isKubeError(error, 'notFound')) throw error
}

async function createPool({ client }: DrainStand): Promise<void> {
  const nodeClass = {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'views' },
    spec: {},
  }
  await client.create(kwokNodeClassKind, nodeClass)
  await client.create(karpenterKinds.nodePool, {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'views' },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '5s', budgets: [{ nodes: '100%' }] },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'views' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['2'] },
          ],
        },
      },
    },
  })
}
