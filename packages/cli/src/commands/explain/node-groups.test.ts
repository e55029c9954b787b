/** Node groups of the Cluster Autoscaler mode in `tenon explain` and `tenon view`. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type ConfigMap, type KubeObject, kinds, type Pod } from '@tenon/api'
import { groupsIn } from '../../source/node-groups.ts'
import { runCommand } from '../../testing/command.test-support.ts'
import { crdType, serveApi } from '../../testing/served-api.test-support.ts'

const batch = 'MachineDeployment/default/batch'

function statusMap(status: string, namespace = 'kube-system'): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-autoscaler-status', namespace },
    data: { status },
  }
}

const status = `time: 2026-11-29 21:00:50.704 +0000 UTC
nodeGroups:
- name: ${batch}
  message: 'not changed now: it is paused'
  health:
    status: Healthy
    cloudProviderTarget: 4
    minSize: 0
    maxSize: 4
    nodeCounts: {registered: {total: 3, ready: 2}}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: x, errorMessage: no quota}}
leftOut:
- name: MachineDeployment/default/reserve
  message: annotation max-size is "many"
`

/** A cluster that only the Cluster Autoscaler mode scales: NodePools are not served. */
async function aCluster(t: TestContext, objects: readonly KubeObject[] = []) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-groups-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const api = await serveApi(t, folder, objects)
  for (const name of ['nodepools', 'nodeclaims']) api.local.delete(crdType, undefined, `${name}.karpenter.sh`)
  api.local.create(kinds.configMap, statusMap(status))
  return {
    ...api,
    explain: async (...args: readonly string[]) =>
      await runCommand(['explain', ...args, '--kubeconfig', api.kubeconfig]),
  }
}

test('CAG-15 CAG-54 a node group tells its sizes, and why it is held or left out', async (t) => {
  const { explain, kubeconfig } = await aCluster(t)
  const { code, err, out } = await explain('nodegroups')
  assert.equal(code, 0, err)
  assert.deepEqual(out.split('\n').slice(0, -1), [
    'Node groups as of 2026-11-29 21:00:50.704 +0000 UTC:',
    `  nodegroup ${batch}: 3 nodes, 2 ready, target 4, between 0 and 4; Backoff, at its maximum size: not changed now: it is paused; left alone after a failure: no quota`,
    '  nodegroup MachineDeployment/default/reserve: LeftOut: annotation max-size is "many"',
  ])
  for (const asked of [['ng', batch], [`nodegroup/${batch}`]]) {
    const one = await explain(...asked)
    assert.match(one.out, /nodegroup MachineDeployment\/default\/batch: 3 nodes/)
    assert.doesNotMatch(one.out, /reserve/)
  }
  const missing = await explain('ng', 'nobody')
  assert.equal(missing.err, 'Error from server (NotFound): nodegroup "nobody" not found\n')
  const view = await runCommand(['view', '--once', '--kubeconfig', kubeconfig])
  assert.match(view.out, /^nodegroup MachineDeployment\/default\/reserve: LeftOut: annotation/m)
})

test('without NodePools a pod is explained by what the autoscaler told of it, and by the groups', async (t) => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'c' }] },
  }
  const { explain, local } = await aCluster(t, [pod])
  const untried = await explain('pod', 'web')
  assert.match(untried.out, /^pod\/web in default: no node group has been tried for it yet$/m)
  const event: KubeObject & Readonly<Record<string, unknown>> = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web.1', namespace: 'default' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web' },
    reason: 'NotTriggerScaleUp',
    message: "pod didn't trigger scale-up: 1 max node group size reached",
    source: { component: 'cluster-autoscaler' },
    lastTimestamp: '2026-11-29T21:00:40Z',
    type: 'Normal',
  }
  local.create(kinds.event, event)
  const { out } = await explain('pods')
  assert.match(
    out,
    /2026-11-29T21:00:40Z NotTriggerScaleUp: pod didn't trigger scale-up: 1 max node group size reached/,
  )
  assert.match(out, /^ {2}nodegroup MachineDeployment\/default\/batch: /m)
  const missing = await explain('pod', 'nobody')
  assert.equal(missing.err, 'Error from server (NotFound): pods "nobody" not found\n')
})

test('a status that is no YAML, or of an earlier process in another namespace, is passed over', () => {
  const later = status.replace('21:00', '22:00').replace('target', '')
  assert.equal(groupsIn([statusMap('{')]), undefined)
  assert.equal(groupsIn([statusMap('')]), undefined)
  assert.equal(
    groupsIn([statusMap(status), statusMap(later, 'other')])?.at,
    '2026-11-29 22:00:50.704 +0000 UTC',
  )
  assert.deepEqual(groupsIn([statusMap('nodeGroups: 3\ntime: x')]), { at: 'x', groups: [] })
})
