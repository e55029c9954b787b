import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type Node, type NodeClaim, type Pod, labels } from '@tenon/api'
import { CliError } from './errors.ts'
import { loadProviders, providerAsked } from './load-provider.ts'
import {
  eventually,
  kubectlOut,
  objectsOf,
  runTenon,
  startCluster,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'
import { toyCloud, toyManifests } from './testing/toy-cloud.test-support.ts'

async function refusal(t: TestContext, text: string): Promise<string> {
  const cwd = await temporaryDirectory(t)
  await writeFile(join(cwd, 'toy.mjs'), text)
  try {
    await loadProviders('./toy.mjs', cwd)
  } catch (error) {
    if (error instanceof CliError) return error.message.replace('--provider=./toy.mjs: ', '')
    throw error
  }
  assert.fail('it was loaded')
}

test('the provider is the one of the flag that comes last, else of the variable', () => {
  assert.equal(providerAsked([], {}), '')
  assert.equal(providerAsked([], { TENON_PROVIDER: 'kwok' }), 'kwok')
  assert.equal(providerAsked(['-provider', 'a', '--provider=./b.js'], { TENON_PROVIDER: 'kwok' }), './b.js')
})

test('a module that is not a provider is refused with the field and the fix', async (t) => {
  assert.match(
    await refusal(t, 'export const other = 1'),
    /^it exports no provider; write `export const provider/,
  )
  assert.match(await refusal(t, 'export const provider = {'), /^cannot load it: /)
  const changed = (from: string, to: string): string => {
    assert.ok(toyCloud.includes(from), from)
    return toyCloud.replace(from, to)
  }
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["name: 'toy',\n  title", "name: 'Toy',\n  title", /^provider\.name must be a name in lower case/],
    ["name: 'toy',\n  title", "name: 'kwok',\n  title", /^provider\.name "kwok" is taken; choose another$/],
    [
      '  nodeClasses: [nodeClass],',
      '  nodeClasses: [],',
      /^provider\.nodeClasses must be a list of at least one/,
    ],
    [
      "flag: 'toy-cpus'",
      "flag: 'log-level'",
      /^provider\.options: --log-level is taken; choose another flag$/,
    ],
    [
      "variable: 'TOY_CPUS'",
      'variable: 1',
      /^provider\.options must be a list of options with flag, variable/,
    ],
    ['  crds: async', '  crd: async', /^provider\.crds must be a function$/],
    ['  simulator: async () =>', '  simulator:', /^provider\.simulator must be a function, or absent$/],
  ]
  for (const [from, to, expected] of cases) assert.match(await refusal(t, changed(from, to)), expected)
  const taken = toyCloud
    .replace("group: 'toy.example.com'", "group: 'karpenter.kwok.sh'")
    .replace("kind: 'ToyNodeClass', plural", "kind: 'KWOKNodeClass', plural")
  assert.match(
    await refusal(t, taken),
    /^provider\.nodeClasses: KWOKNodeClass of karpenter\.kwok\.sh belongs to KWOK/,
  )
})

test('an installed package is found from the working folder; what is neither is refused', async (t) => {
  const cwd = await temporaryDirectory(t)
  const folder = join(cwd, 'node_modules/toy-cloud')
  await mkdir(folder, { recursive: true })
  const description = { name: 'toy-cloud', type: 'module', exports: './toy.js' }
  await writeFile(join(folder, 'package.json'), JSON.stringify(description))
  await writeFile(join(folder, 'toy.js'), toyCloud)
  const { all, chosen } = await loadProviders('toy-cloud', cwd)
  assert.equal(chosen?.title, 'Toy Cloud')
  assert.equal(all.at(-1), chosen)
  await assert.rejects(
    loadProviders('ovh', cwd),
    /--provider=ovh: give exoscale, clever-cloud, cluster-api or kwok, the path of a provider module such as \.\/my-cloud\.js, or an installed/,
  )
})

test('a cloud in a file outside the repository is validated, prints its definitions, and gets nodes for pods', async (t) => {
  const cwd = await temporaryDirectory(t)
  await writeFile(join(cwd, 'toy.mjs'), toyCloud)
  await writeFile(join(cwd, 'toys.yaml'), toyManifests)
  const tenon = async (...args: readonly string[]) =>
    await runTenon(t, cwd, [...args, '--provider', './toy.mjs'])

  const valid = await tenon('validate', 'toys.yaml')
  assert.deepEqual([valid.code, valid.out], [0, ''], valid.err)
  await writeFile(
    join(cwd, 'wrong.yaml'),
    toyManifests.replace('[red]', '[blue]').replace('com/v1', 'com/v1alpha1'),
  )
  const wrong = await tenon('validate', 'wrong.yaml')
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.out,
    /ToyNodeClass of toy\.example\.com\/v1alpha1 is not served; write apiVersion toy\.example\.com\/v1/,
  )
  assert.match(wrong.out, /blue/)

  await startCluster(t, cwd, 'devcluster')
  const cluster = ['--kubeconfig', '.tenon/kubeconfig']
  assert.match((await tenon('crds')).out, /name: toynodeclasses\.toy\.example\.com/)
  const applied = await tenon('crds', 'apply', ...cluster)
  assert.match(
    applied.out,
    /customresourcedefinition\/toynodeclasses\.toy\.example\.com created/,
    applied.err,
  )
  await kubectlOut(cwd, ['apply', '-f', 'toys.yaml'])
  const quiet = ['--disable-leader-election', '--metrics-port=0', '--health-probe-port=0', '--debug-port=0']
  const controller = startTenon(t, cwd, [
    'controller',
    ...cluster,
    ...quiet,
    '--provider=./toy.mjs',
    '--toy-cpus=8',
  ])
  await eventually(
    async () => {
      const [pod] = await objectsOf<Pod>(cwd, 'pods')
      return pod?.spec.nodeName?.startsWith('toy-') || undefined
    },
    () => `the pod gets a node:\n${controller.out()}${controller.err()}`,
  )
  const [node] = await objectsOf<Node>(cwd, 'nodes')
  assert.equal(node?.metadata.labels?.[labels.instanceType], 'toy.8')
  assert.equal(node?.metadata.labels?.['karpenter.sh/registered'], 'true')
  await kubectlOut(cwd, ['delete', 'pod,nodepool', '--all', '--force'])
  await eventually(
    async () => {
      const left = [
        ...(await objectsOf<NodeClaim>(cwd, 'nodeclaims')),
        ...(await objectsOf<Node>(cwd, 'nodes')),
      ]
      return left.length === 0 || undefined
    },
    () => `the node goes:\n${controller.out()}${controller.err()}`,
  )
})

test('a cloud in a file outside the repository is simulated by up; one without a simulator says what is missing', async (t) => {
  const cwd = await temporaryDirectory(t)
  await writeFile(join(cwd, 'toy.mjs'), toyCloud)
  const up = await startCluster(t, cwd, 'up', '--provider', './toy.mjs')
  assert.match(
    up.out(),
    /^simulated Toy Cloud {2}in the cluster itself\nmetrics and probes {3}http:\/\/127\.0\.0\.1:\d+$/m,
  )
  await eventually(
    () =>
      /pods 1 running 0 pending {3}nodes 1\/1 ready .* instances 1 {3}0\.100 EUR/.test(up.out()) || undefined,
    () => `the pod runs: ${up.out()}${up.err()}`,
  )
  assert.equal((await up.end('SIGINT')).code, 130)
  assert.equal(up.err(), '')

  await writeFile(join(cwd, 'bare.mjs'), toyCloud.replace('  simulator: async', '  simulators: async'))
  for (const command of ['up', 'devcluster']) {
    const { code, err } = await runTenon(t, cwd, [command, '--provider', './bare.mjs'])
    assert.equal(code, 1)
    assert.match(
      err,
      /^error: --provider=\.\/bare\.mjs: Toy Cloud cannot be simulated: its module lacks simulator, .*or use exoscale/,
    )
  }
  const { err } = await runTenon(t, cwd, ['up', '--demo', '--provider', './toy.mjs'])
  assert.equal(err, 'error: --demo: the simulator of Toy Cloud has no tour; remove --demo\n')
})
