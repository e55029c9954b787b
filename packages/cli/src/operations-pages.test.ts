/** The pages of docs/operations, played in the embedded cluster beside a controller of their own. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { repositoryRoot } from './testing/image.test-support.ts'
import { addTenon, blocksOf, hasKubectl, runCommands } from './testing/pages.test-support.ts'
import {
  controllerSettings,
  eventually,
  kubectlOut,
  objectsOf,
  startCluster,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from './testing/tenon-process.test-support.ts'

const folder = 'docs/operations'
const blocks = readdirSync(join(repositoryRoot, folder)).flatMap((page) => blocksOf(`${folder}/${page}`))
const commandsOf = (marker: string) => blocks.filter((block) => block.marker === marker)
const skip =
  hasKubectl && spawnSync('jq', ['--version']).status === 0 ? false : 'kubectl and jq are not installed'

/** Each of its pods needs a node of its own. */
const work = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'work', namespace: 'default' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'work' } },
    template: {
      metadata: { labels: { app: 'work' } },
      spec: {
        nodeSelector: { 'karpenter.sh/nodepool': 'standard' },
        containers: [{ name: 'main', image: 'nginx', resources: { requests: { cpu: '1500m' } } }],
      },
    },
  },
}

interface Stand {
  readonly cwd: string
  readonly controller: () => TenonProcess
  /** Names, UIDs and instances of the nodes, once all pods of the Deployment run. */
  readonly nodes: () => Promise<readonly string[]>
  readonly run: (marker: string) => Promise<void>
}

async function opened(t: TestContext): Promise<Stand> {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster', '--provider', 'exoscale', '--boot-delay', '500ms')
  await addTenon(cwd)
  const { code, err } = await runCommands(cwd, 'tenon crds apply')
  assert.equal(code, 0, err)
  await kubectlOut(cwd, ['apply', '-f', join(repositoryRoot, 'examples/exoscale/standard.yaml')])
  await kubectlOut(cwd, ['apply', '-f', '-'], JSON.stringify(work))
  const settings = await controllerSettings(cwd)
  const free = ['--metrics-port', '0', '--health-probe-port', '0', '--debug-port', '0']
  const flags = ['--leader-election-namespace', 'kube-system', '--batch-idle-duration', '200ms', ...free]
  return {
    cwd,
    controller: () => startTenon(t, cwd, ['controller', '--provider', 'exoscale', ...flags], settings),
    nodes: async () => {
      await eventually(
        async () => {
          const pods = (await objectsOf<Pod>(cwd, 'pods')).filter(({ metadata }) =>
            metadata.name.startsWith('work-'),
          )
          return (pods.length >= 2 && pods.every(({ status }) => status?.phase === 'Running')) || undefined
        },
        () => 'all pods run',
      )
      const nodes = await objectsOf<Node>(cwd, 'nodes')
      return nodes
        .filter(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool'] !== undefined)
        .map(({ metadata, spec }) => `${metadata.name} ${metadata.uid} ${spec?.providerID}`)
        .toSorted()
    },
    run: async (marker) => {
      const found = commandsOf(marker)
      assert.ok(found.length > 0, marker)
      for (const { place, text } of found) {
        const outcome = await runCommands(cwd, text, settings)
        assert.equal(outcome.code, 0, `${place}\n${text}\n${outcome.out}${outcome.err}`)
      }
    },
  }
}

test('ADO-16 the commands of docs/operations run, and definitions that were deleted are brought back without a change of nodes', {
  skip,
}, async (t) => {
  const { cwd, controller, nodes, run } = await opened(t)
  const first = controller()
  const before = await nodes()
  assert.equal(before.length, 2)
  await run('run')
  await run('run: back up')
  await first.end('SIGKILL')
  const ours = [
    'nodepools.karpenter.sh',
    'nodeclaims.karpenter.sh',
    'exoscalenodeclasses.karpenter.exoscale.com',
  ]
  await kubectlOut(cwd, ['delete', 'crd', ...ours, '--wait=false'])
  await run('run: let the definitions go')
  let left = ''
  await eventually(
    async () => {
      left = await kubectlOut(cwd, ['get', 'crd', '-o', 'name'])
      return ours.every((name) => !left.includes(name)) || undefined
    },
    () => left,
  )
  await run('run: bring back')
  const second = controller()
  // It launches for one more pod: by then it has judged the nodes that there are.
  await kubectlOut(cwd, ['scale', 'deployment/work', '--replicas=3'])
  const after = await eventually(
    async () => {
      const now = await nodes()
      return now.length > before.length ? now : undefined
    },
    () => second.out(),
  )
  assert.deepEqual(
    after.filter((node) => before.includes(node)),
    before,
  )
})

test('ADO-16 the queries of docs/operations/service-levels.md are about metrics that there are', () => {
  const known = readFileSync(join(repositoryRoot, 'docs/metrics.md'), 'utf8')
  const queries = blocks.filter(({ language }) => language === 'promql')
  assert.ok(queries.length > 4)
  for (const { place, text } of queries)
    for (const [, name = ''] of text.matchAll(
      /\b((?:karpenter|tenon|leader)_\w+?)(?:_bucket|_count|_sum)?(?=[{[])/g,
    ))
      assert.ok(known.includes(`| \`${name}\` |`), `${place}: ${name}`)
})
