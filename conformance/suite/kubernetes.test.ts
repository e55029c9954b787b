import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { goModules, pinnedVersion } from '../src/components.ts'
import { aDeployment, Cluster, conditionOf, kwokNode, sharedControlPlane, until } from './cluster.ts'

let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
let cluster: Cluster
const labels = { 'tenon.test/pool': 'kubernetes' }
const nodeName = 'kwok-kubernetes'

before(async () => {
  controlPlane = await sharedControlPlane()
  cluster = new Cluster(controlPlane.kubeconfigPath)
})

after(async () => {
  await cluster.delete('v1', 'Node', nodeName)
  await controlPlane.stop()
})

function kubectl(...args: string[]): string {
  const own = join(controlPlane.binDir, 'kubectl')
  return execFileSync(own, ['--kubeconfig', controlPlane.kubeconfigPath, ...args], { encoding: 'utf8' })
}

function kubernetesVersion(): string {
  const kubernetes = goModules(process.env).find((module) => module.path === 'k8s.io/kubernetes')
  assert.ok(kubernetes)
  return pinnedVersion(kubernetes)
}

const ofAssets = process.env['KUBEBUILDER_ASSETS'] ? 'binaries are not the pinned ones' : false

test('programs carry the pinned version', { skip: ofAssets }, () => {
  const version = JSON.parse(kubectl('version', '-o', 'json'))
  assert.equal(version.serverVersion.gitVersion, kubernetesVersion())
  assert.equal(version.clientVersion.gitVersion, kubernetesVersion())
  assert.equal(`v${version.serverVersion.major}.${version.serverVersion.minor}`, minorOf(kubernetesVersion()))
})

test('RBAC decides: the admin may do everything, a service account nothing', () => {
  assert.equal(kubectl('auth', 'can-i', '*', '*').trim(), 'yes')
  const account = '--as=system:serviceaccount:default:default'
  assert.throws(() => kubectl('auth', 'can-i', 'list', 'nodes', account))
})

test('a kwok node becomes Ready with a lease, runs the pods of a Deployment, and can be deleted', async () => {
  await cluster.create(kwokNode(nodeName, labels))
  const node = await until('the node is Ready', 10, async () => {
    const found = await cluster.get('v1', 'Node', nodeName)
    return found && conditionOf(found, 'Ready') === 'True' && found
  })
  assert.equal(
    node.status?.nodeInfo?.kubeletVersion,
    JSON.parse(kubectl('version', '-o', 'json')).serverVersion.gitVersion,
  )
  assert.equal(node.status?.capacity?.['cpu'], '8')
  assert.equal(node.status?.allocatable?.['cpu'], '7500m')
  await until('the node has a lease', 10, () =>
    cluster.get('coordination.k8s.io/v1', 'Lease', nodeName, 'kube-node-lease'),
  )

  const parts = { name: 'steady', replicas: 5, cpu: '500m', memory: '256Mi', nodeSelector: labels }
  await cluster.create(aDeployment(parts))
  await until('the Deployment is available', 30, async () => {
    const found = await cluster.get('apps/v1', 'Deployment', 'steady', 'default')
    return found?.status?.availableReplicas === 5
  })
  const pods = await cluster.list('v1', 'Pod', 'default', 'app=steady')
  assert.deepEqual(
    pods.map((pod) => [pod.status?.phase, pod.spec?.nodeName, conditionOf(pod, 'Ready')]),
    Array.from({ length: 5 }, () => ['Running', nodeName, 'True']),
  )
  assert.match(kubectl('get', 'nodes', nodeName), /Ready .* v1\.\d+\.\d+/)

  await cluster.delete('apps/v1', 'Deployment', 'steady', 'default')
  await until('its pods are gone', 20, async () => {
    return (await cluster.list('v1', 'Pod', 'default', 'app=steady')).length === 0
  })
  await cluster.delete('v1', 'Node', nodeName)
  await until('the node is gone', 10, async () => (await cluster.get('v1', 'Node', nodeName)) === undefined)
})

function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}
