import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { karpenterKinds, kinds } from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { Answers, type FirstPool } from '@tenon/console'
import { SystemClock } from '@tenon/runtime'
import { crdType, serveApi } from '../../testing/served-api.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { builtInProviders } from '../../providers.ts'
import { clusterActions } from './actions.ts'
import { consoleFacts } from './facts.ts'
import { startAnswer } from './start.ts'
import { quietIo } from '../../testing/quiet-io.test-support.ts'

const never = new AbortController().signal

/** A cluster without NodePools that has the definitions of some clouds. */
async function anEmptyCluster(t: TestContext, ...clouds: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-start-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { kubeconfig, local } = await serveApi(t, folder)
  for (const cloud of builtInProviders)
    if (clouds.includes(cloud.name)) for (const crd of await cloud.crds()) local.create(crdType, crd as never)
  const ended = new AbortController()
  t.after(() => ended.abort())
  const io = quietIo(ended.signal)
  const start = async (take: () => Promise<Snapshot> = () => Promise.reject(new Error('few rights'))) => {
    const answer = await startAnswer(io, { kubeconfig }, take)
    assert.ok('pools' in answer, JSON.stringify(answer))
    return answer.pools
  }
  const apply = async (manifest: string) =>
    await (await clusterActions(io, { kubeconfig, drainTimeout: 1 }).plan({ kind: 'apply', manifest })).run(
      never,
    )
  return { apply, io, kubeconfig, local, start }
}

test('PGE-9 the first NodePool of each cloud is created as it is shown, after its node class, and only once', async (t) => {
  for (const { name, title } of builtInProviders) {
    const { apply, local, start } = await anEmptyCluster(t, name)
    const [pool, ...others] = await start()
    assert.ok(pool)
    assert.deepEqual([pool.title, others.length], [title, 0])
    assert.match(pool.command, /^kubectl create -f - --kubeconfig \S+ <<'END'\n/)
    assert.ok(pool.command.includes(pool.manifest))
    assert.match(
      await apply(pool.manifest),
      /^\w+nodeclass\.\S+\/default created\nnodepool\.karpenter\.sh\/default created$/,
    )
    assert.equal(local.list(karpenterKinds.nodePool).length, 1)
    await assert.rejects(apply(pool.manifest), /nothing to apply/)
    // Of a class that exists, only the NodePool is missing.
    local.delete(karpenterKinds.nodePool, undefined, 'default')
    const [again] = await start()
    assert.equal(again?.nodeClass, 'default')
    assert.doesNotMatch(again?.manifest ?? '', /NodeClass\nmetadata/)
    assert.equal(await apply(again?.manifest ?? ''), 'nodepool.karpenter.sh/default created')
  }
})

test('PGE-9 a pod that waits is placed by the first NodePool of simulated nodes', async (t) => {
  const { apply, io, kubeconfig, local, start } = await anEmptyCluster(t, 'kwok')
  const [pool] = await start()
  await apply(pool?.manifest ?? '')
  local.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'first', namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '500m' } } }] },
  })
  const answers = new Answers(consoleFacts(io, { kubeconfig }), new SystemClock())
  const query = 'kind=pod&namespace=default&name=first'
  const { text } = await answers.answer({ method: 'GET', path: '/api/explain', query, body: '' }, never)
  assert.match(text, /default/)
  assert.match(text, /launch/)
})

test('PGE-9 of several clouds the controller says which; without it each is offered, and none is said', async (t) => {
  const { start } = await anEmptyCluster(t, 'exoscale', 'kwok')
  const titles = (pools: readonly FirstPool[]) => pools.map(({ title }) => title)
  assert.deepEqual(titles(await start()), ['Exoscale', 'KWOK'])
  const kwok = builtInProviders.find(({ name }) => name === 'kwok')
  const ofKwok = { ...snapshot, cloud: { ...snapshot.cloud, nodeClasses: kwok?.nodeClasses ?? [] } }
  assert.deepEqual(titles(await start(() => Promise.resolve(ofKwok))), ['KWOK'])
  const { io, kubeconfig } = await anEmptyCluster(t)
  const none = await startAnswer(io, { kubeconfig }, () => Promise.resolve(snapshot))
  assert.ok('absent' in none)
  assert.match(none.absent, /no node class of Exoscale, .*: install the CustomResourceDefinitions/)
})

test('only NodePools and node classes are applied', async (t) => {
  const { apply } = await anEmptyCluster(t, 'kwok')
  const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: mine}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: me, apiGroup: rbac.authorization.k8s.io}]
`
  await assert.rejects(apply(role), /ClusterRoleBinding/)
})
