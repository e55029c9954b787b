/** `tenon preflight` on a real API server: its access reviews, its CustomResourceDefinitions, its clock. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { loadAllYaml } from '@kubernetes/client-node'
import { stringify } from 'yaml'
import { chartsFolder, Helm } from '../src/chart/helm.ts'
import type { RoleObject } from '../src/chart/rights.ts'
import { Cluster, conditionOf, kwokNode, sharedControlPlane, until } from './cluster.ts'
import { crdsYaml } from './tenon.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const namespace = 'kube-system'
const nodeName = 'preflight-host'
const granting: ReadonlySet<string> = new Set([
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
])

let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
let folder = ''
let roles = ''

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

function run(program: string, args: readonly string[], input = ''): Promise<Outcome> {
  const all = [...args, '--kubeconfig', controlPlane.kubeconfigPath]
  return new Promise((resolve) => {
    const child = execFile(program, all, { timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
    })
    child.stdin?.end(input)
  })
}

async function kubectl(args: readonly string[], input = ''): Promise<string> {
  const { code, out, err } = await run(join(controlPlane.binDir, 'kubectl'), args, input)
  assert.equal(code, 0, err)
  return out
}

interface Check {
  readonly name: string
  readonly status: string
  readonly message?: string
  readonly findings: readonly { readonly message: string }[]
}

async function preflight(): Promise<readonly Check[]> {
  const account = ['--service-account', `${namespace}/karpenter`]
  const args = [main, 'preflight', '--provider', 'kwok', ...account, '-o', 'json']
  const { out, err } = await run(process.execPath, args)
  assert.equal(err, '')
  return (JSON.parse(out) as { readonly checks: readonly Check[] }).checks
}

before(async () => {
  controlPlane = await sharedControlPlane()
  folder = mkdtempSync(join(tmpdir(), 'tenon-preflight-'))
  const helm = await Helm.open(folder)
  const values = { provider: 'kwok', controller: { image: { repository: 'registry.example/tenon' } } }
  const args = ['template', 'karpenter', join(chartsFolder, 'tenon'), '--namespace', namespace, '--skip-crds']
  const { code, out, err } = await helm.run(args, values)
  assert.equal(code, 0, err)
  const objects = (loadAllYaml(out) as (RoleObject | null)[]).filter((each) => granting.has(each?.kind ?? ''))
  assert.ok(objects.length >= 7)
  roles = objects.map((each) => stringify(each)).join('---\n')
  await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], crdsYaml())
  await kubectl(['apply', '-f', '-'], roles)
  const cluster = new Cluster(controlPlane.kubeconfigPath)
  await cluster.create(kwokNode(nodeName, {}))
  await until('the node is Ready', 10, async () => {
    const found = await cluster.get('v1', 'Node', nodeName)
    return found && conditionOf(found, 'Ready') === 'True'
  })
})

after(async () => {
  await kubectl(['delete', '--ignore-not-found', 'node', nodeName])
  await kubectl(['delete', '--ignore-not-found', '-f', '-'], roles)
  // The definitions stay: suites before this one may have left objects of them, without which they do not go.
  rmSync(folder, { recursive: true, force: true })
  await controlPlane.stop()
})

test('VER-1 EXP-26 nothing is wrong with a real API server, the roles of the chart and the definitions', async () => {
  const checks = await preflight()
  assert.deepEqual(
    checks.filter(({ status }) => status !== 'ok'),
    [],
  )
  const messageOf = (check: string) => checks.find(({ name }) => name === check)?.message ?? ''
  assert.equal(messageOf('server-version'), `Kubernetes ${controlPlane.version}`)
  assert.match(messageOf('rights'), /karpenter has all \d+ rights/)
})

test('EXP-26 a right and a field that are missing are named', async () => {
  const name = 'karpenter-core'
  await kubectl(['patch', 'clusterrole', name, '--type=json', '-p', '[{"op":"remove","path":"/rules/1"}]'])
  const path = '/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/nodes'
  await kubectl([
    'patch',
    'crd',
    'nodepools.karpenter.sh',
    '--type=json',
    '-p',
    JSON.stringify([{ op: 'remove', path }]),
  ])
  const checks = await preflight()
  const told = (check: string) => checks.find((each) => each.name === check)?.findings[0]?.message
  assert.equal(
    told('rights'),
    `service account ${namespace}/karpenter may not create, patch, delete nodeclaims.karpenter.sh`,
  )
  assert.equal(told('crds'), 'nodepools.karpenter.sh: lacks the fields status.nodes')
})
