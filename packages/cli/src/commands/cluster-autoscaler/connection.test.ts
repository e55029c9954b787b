import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readOptions } from '@tenon/cluster-autoscaler'
import { connectionsOf } from './connection.ts'

const folder = mkdtempSync(join(tmpdir(), 'tenon-'))
after(() => {
  rmSync(folder, { recursive: true })
})

/** A kubeconfig for `https://NAME:6443`. */
function kubeconfig(name: string): string {
  const path = join(folder, name)
  const content = {
    clusters: [{ name: 'c', cluster: { server: `https://${name}:6443` } }],
    users: [{ name: 'u', user: { token: name } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  writeFileSync(path, JSON.stringify(content))
  return path
}

const workload = kubeconfig('workload')
const management = kubeconfig('management')
// Stands in for the service account of a pod, whose files tests have not.
const env = { KUBECONFIG: kubeconfig('pod') }

/** Host names of the workload and the management cluster. */
function hosts(...flags: readonly string[]): readonly [workload: string, management: string] {
  const read = readOptions(['--cloud-provider=clusterapi', ...flags], ['clusterapi'])
  assert.ok(read.kind === 'options')
  const { workload: nodes, management: objects = nodes } = connectionsOf(read.process, env)
  return [new URL(nodes.server).hostname, new URL(objects.server).hostname]
}

test('CAG-1 without flags both clusters are that of the pod', () => {
  assert.deepEqual(hosts(), ['pod', 'pod'])
})

test('CAG-2 --kubeconfig names both, unless the pod or --cloud-config is authoritative', () => {
  assert.deepEqual(hosts(`--kubeconfig=${workload}`), ['workload', 'workload'])
  assert.deepEqual(hosts(`--kubeconfig=${workload}`, '--clusterapi-cloud-config-authoritative'), [
    'workload',
    'pod',
  ])
  assert.deepEqual(hosts(`--kubeconfig=${workload}`, `--cloud-config=${management}`), [
    'workload',
    'management',
  ])
  assert.deepEqual(hosts(`--cloud-config=${management}`), ['pod', 'management'])
  assert.deepEqual(hosts(`--cloud-config=${management}`, '--clusterapi-cloud-config-authoritative'), [
    'pod',
    'management',
  ])
})

test('--kubernetes is the workload cluster for everything, and not the management cluster', () => {
  assert.deepEqual(hosts('--kubernetes=http://nodes.example:8080?inClusterConfig=false'), [
    'nodes.example',
    'pod',
  ])
})

test('an unusable file of either cluster names it', () => {
  for (const flag of ['kubeconfig', 'cloud-config'])
    assert.throws(() => hosts(`--${flag}=/nowhere/config`), /kubeconfig \/nowhere\/config does not exist/)
})

test('a cloud without a management cluster only opens the workload cluster', () => {
  const read = readOptions(['--cloud-config=/nowhere/config'], ['acme', 'clusterapi'])
  assert.ok(read.kind === 'options')
  assert.equal(connectionsOf(read.process, env).management, undefined)
})
