import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { runCommand } from '../../testing/command.test-support.ts'

/** A NodePool; `spec` and `template` are lines that are added. */
function aPool(
  name: string,
  {
    spec = [],
    template = [],
    requirements = ['[]'],
    kind = 'ExoscaleNodeClass',
  }: {
    readonly spec?: readonly string[]
    readonly template?: readonly string[]
    readonly requirements?: readonly string[]
    readonly kind?: 'ExoscaleNodeClass' | 'KWOKNodeClass'
  } = {},
): string {
  const group = kind === 'KWOKNodeClass' ? 'karpenter.kwok.sh' : 'karpenter.exoscale.com'
  return [
    'apiVersion: karpenter.sh/v1',
    'kind: NodePool',
    `metadata: {name: ${name}}`,
    'spec:',
    ...spec.map((line) => `  ${line}`),
    '  template:',
    ...template.map((line) => `    ${line}`),
    '    spec:',
    `      nodeClassRef: {group: ${group}, kind: ${kind}, name: default}`,
    `      requirements: ${requirements.join('\n        ')}`,
    '',
  ].join('\n')
}

const overlay = (name: string, spec: string) =>
  `apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: ${name}}\nspec: {requirements: [], ${spec}}\n`

/** What `tenon validate -` prints about a text, line by line, without `stdin:`. */
async function problems(input: string, ...args: readonly string[]): Promise<readonly string[]> {
  const { out, code } = await runCommand(['validate', '-', ...args], { input })
  const lines = out.split('\n').filter(Boolean)
  assert.equal(code, lines.some((line) => line.includes(': error: ')) ? 1 : 0)
  return lines.map((line) => line.replace(/^stdin:/, ''))
}

async function folderWith(t: TestContext, files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-validate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, name, '..'), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  return folder
}

test('the shipped examples hold no error', async () => {
  const cwd = join(import.meta.dirname, '../../../../..')
  const args = ['validate', 'examples/exoscale', '--zone', 'ch-gva-2', '--feature-gates', 'NodeOverlay=true']
  const { code, err } = await runCommand(args, { cwd })
  assert.equal(code, 0)
  assert.match(err, /^\d+ objects in \d+ files checked; .*; 0 errors, /)
  const others = ['examples/clever-cloud', 'examples/clever-cloud/workloads']
  const other = await runCommand(['validate', ...others], { cwd })
  assert.equal(other.code, 0, other.err)
  assert.match(other.err, /^\d+ objects in 17 files checked; (.*; )?0 errors, /)
  const third = await runCommand(
    ['validate', ...['', '/hub', '/workloads'].map((folder) => `examples/cluster-api${folder}`)],
    { cwd },
  )
  assert.equal(third.code, 0, third.out)
  assert.match(third.err, /^12 objects in 17 files checked; .*; 0 errors, 0 warnings/)
})

test('MachineDeployments among the files are what NodePools of Cluster API are held against', async (t) => {
  const root = join(import.meta.dirname, '../../../../../examples/cluster-api')
  const pool = await readFile(join(root, 'general-purpose.yaml'), 'utf8')
  const deployments = await readFile(join(root, 'hub/three-sizes.yaml'), 'utf8')
  const wrong = pool.replace('[small, medium, large]', '[tiny]')
  assert.notEqual(wrong, pool)
  const alone = await folderWith(t, { 'pool.yaml': wrong })
  const nothingKnown = await runCommand(['validate', 'pool.yaml'], { cwd: alone })
  assert.equal(nothingKnown.code, 0, nothingKnown.out)
  const cwd = await folderWith(t, { 'pool.yaml': wrong, 'hub.yaml': deployments })
  const { code, out } = await runCommand(['validate', 'pool.yaml', 'hub.yaml'], { cwd })
  assert.equal(code, 1)
  assert.match(
    out,
    /NodePool general-purpose: .*no instance type of cluster-api has node\.kubernetes\.io\/instance-type In \[tiny\]; there are large, medium, small/,
  )
})

test('RPB-14 a MachineDeployment that would be left out for its annotations is refused, without any NodePool', async (t) => {
  const root = join(import.meta.dirname, '../../../../../examples/cluster-api')
  const deployments = await readFile(join(root, 'hub/three-sizes.yaml'), 'utf8')
  const cpu = /(capacity\.cluster-autoscaler\.kubernetes\.io\/cpu: ).*/
  const wrong = deployments.replace(cpu, '$1"4 cores"')
  assert.notEqual(wrong, deployments)
  const cwd = await folderWith(t, { 'hub.yaml': wrong })
  const { code, out } = await runCommand(['validate', 'hub.yaml'], { cwd })
  assert.equal(code, 1)
  assert.match(
    out,
    /error: MachineDeployment \S+: metadata\.annotations: annotation capacity\.cluster-autoscaler\.kubernetes\.io\/cpu is "4 cores", which is not a quantity of cpu; write a quantity such as 4 or 3500m/,
  )
})

test('the guide shows what is printed', async (t) => {
  const guide = await readFile(join(import.meta.dirname, '../../../../../docs/validate.md'), 'utf8')
  const [manifest = '', session = ''] = [...guide.matchAll(/^```(?:yaml)?\n([\s\S]*?)^```$/gm)].map(
    (match) => match[1],
  )
  const [command, ...expected] = session.trimEnd().split('\n')
  assert.equal(command, '$ tenon validate nodepool.yaml')
  const cwd = await folderWith(t, { 'nodepool.yaml': manifest })
  const { out, err } = await runCommand(['validate', 'nodepool.yaml'], { cwd })
  assert.deepEqual(`${out}${err}`.trimEnd().split('\n'), expected)
})

test('what the API server refuses is told with its place and what to write instead', async () => {
  const spec = [
    'limits: {cpu: 1.5, nvidia.com/gpu: many}',
    'disruption:',
    '  consolidateAfter: 1d',
    '  consolidationPolicy: WhenUnderutilized',
    '  expireAfter: 1h',
    '  budgets:',
    '    - nodes: 10',
  ]
  assert.deepEqual(await problems(aPool('a', { spec })), [
    '1:1: warning: NodePool a: some rules are checked only once the errors are fixed',
    '5:17: error: NodePool a: spec.limits.cpu: must be of type integer or string, not number; put the value in quotes',
    '5:38: error: NodePool a: spec.limits.nvidia.com/gpu: invalid value: "many"; write a quantity such as "1500m", "4" or 8Gi; fractions need quotes',
    '7:23: error: NodePool a: spec.disruption.consolidateAfter: invalid value: "1d"; write a duration in hours, minutes and seconds, such as 30s, 1h30m or 720h, or Never',
    '8:26: error: NodePool a: spec.disruption.consolidationPolicy: unsupported value: "WhenUnderutilized": supported values: "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"; it is called WhenEmptyOrUnderutilized now',
    '9:18: error: NodePool a: spec.disruption.expireAfter: unknown field; write it as spec.template.spec.expireAfter',
    '11:16: error: NodePool a: spec.disruption.budgets[0].nodes: must be of type string, not integer; put the value in quotes',
  ])
})

test('rules of the CRDs hold, and unknown fields are guessed', async () => {
  const spec = ['replicas: 3', 'weights: 5', 'weight: 5']
  assert.deepEqual(await problems(aPool('a', { spec }), '--feature-gates', 'StaticCapacity=true'), [
    "4:1: error: NodePool a: spec: invalid value: 'weight' does not work with 'replicas'",
    '6:12: error: NodePool a: spec.weights: unknown field; did you mean weight?',
  ])
  const missing = 'apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: {}\n'
  assert.deepEqual((await problems(missing)).slice(-1), [
    '4:1: error: NodePool a: spec.template: required value',
  ])
})

test('rules of parts without errors are checked beside the errors of others', async () => {
  const spec = ['weight: x', 'disruption: {budgets: [{nodes: "1", schedule: "@daily"}]}']
  const requirements = ['', '- {key: kubernetes.io/hostname, operator: Exists}']
  const lines = await problems(aPool('a', { spec, requirements }))
  assert.match(lines.join('\n'), /5:11: error: NodePool a: spec\.weight: must be of type integer, not string/)
  assert.match(
    lines.join('\n'),
    /6:16: error: NodePool a: spec\.disruption\.budgets: .*'schedule' must be set with 'duration'/,
  )
  assert.match(lines.join('\n'), /requirements\[0\]\.key: .*label "kubernetes.io\/hostname" is restricted/)
})

test('words that kubectl reads as booleans are pointed out', async () => {
  const template = ['metadata:', '  labels: {a: on, b: "off", c: often}']
  assert.deepEqual(await problems(aPool('a', { template })), [
    '7:19: warning: NodePool a: kubectl reads on as a boolean; quote it if you mean a string',
  ])
})

test('what the controller refuses is told as well', async () => {
  const template = ['metadata:', '  labels:', '    spaces are not allowed: x']
  const requirements = ['', '- {key: example.com/a, operator: In, values: [ok, not ok]}']
  const [label, value, ...rest] = await problems(aPool('a', { template, requirements }))
  assert.match(
    label ?? '',
    /^8:33: error: NodePool a: spec\.template\.metadata\.labels\["spaces are not allowed"\]: /,
  )
  assert.match(
    value ?? '',
    /^12:59: error: NodePool a: spec\.template\.spec\.requirements\[0\]\.values\[1\]: .*"not ok"/,
  )
  assert.deepEqual(rest, [])
})

test('a budget that nobody can read, and one that does nothing', async () => {
  const spec = [
    'disruption:',
    '  budgets:',
    '    - {nodes: "0", schedule: "0 0 * * 7", duration: 1h}',
    '    - {nodes: "99999999999999999999"}',
    '    - {nodes: "0", reasons: []}',
    '    - {nodes: "0", schedule: "@daily", duration: 0m}',
  ]
  const lines = await problems(aPool('a', { spec }))
  assert.deepEqual(
    lines.map((line) => line.replace(/: NodePool a: spec\.disruption\.budgets/, '')),
    [
      '7:32: error[0].schedule: schedule cannot be read, which stops every disruption of the pool; write five cron fields (Sunday is 0), or @daily, without anything after it',
      '8:17: error[1].nodes: nodes cannot be read, which stops every disruption of the pool; write a smaller number',
      '9:22: warning[2].reasons: an empty list has no effect; remove reasons to include all',
      '10:52: warning[3].duration: the budget is never active',
    ],
  )
})

test('fields that do nothing are warned about', async () => {
  const spec = ['replicas: 3', 'disruption: {consolidateAfter: 30s}']
  const status = 'status: {nodes: 3}\n'
  assert.deepEqual(await problems(aPool('a', { spec }) + status), [
    '5:13: warning: NodePool a: spec.replicas: a static pool launches nothing while feature gate StaticCapacity is off; start the controller with --feature-gates StaticCapacity=true',
    '6:34: warning: NodePool a: spec.disruption.consolidateAfter: is ignored on a static pool',
    '11:1: warning: NodePool a: status: is ignored when an object is created; leave it out',
  ])
  const former =
    'apiVersion: karpenter.exoscale.com/v1\nkind: ExoscaleNodeClass\nmetadata: {name: a}\nspec:\n  imageTemplateSelector: {}\n  nodeLabels: {a: b, karpenter.sh/x: c}\n'
  assert.deepEqual(await problems(former), [
    '6:3: warning: ExoscaleNodeClass a: spec.nodeLabels: field of an earlier release: deprecated; nodes get those labels that their NodePool does not set; write them under spec.template.metadata.labels of the NodePool',
    '6:38: warning: ExoscaleNodeClass a: spec.nodeLabels["karpenter.sh/x"]: field of an earlier release: ignored: labels of domain karpenter.sh are reserved',
  ])
})

test('WNT-6 a CapacityQuota is refused as by the API server, with line and field', async () => {
  const quota = (spec: string) =>
    `apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityQuota\nmetadata: {name: q}\nspec:\n  ${spec}\n`
  const amounts =
    'limits:\n    resources:\n      cpu: 500m\n      memory: 3.67Gi\n      nodes: "-1"\n      pods: 8k'
  const message = 'All resource quantities must be non-negative integers.'
  assert.deepEqual(await problems(quota(amounts)), [
    `7:12: error: CapacityQuota q: spec.limits.resources.cpu: invalid value: "500m": ${message}`,
    `8:15: error: CapacityQuota q: spec.limits.resources.memory: invalid value: "3.67Gi": ${message}`,
    `9:14: error: CapacityQuota q: spec.limits.resources.nodes: invalid value: "-1": ${message}`,
  ])
  const names = Array.from({ length: 21 }, (_, index) => `r${index}: 1`).join(', ')
  assert.match((await problems(quota(`limits: {resources: {${names}}}`))).join(), /5:\d+: .*at most 15 items/)
  assert.match(
    (await problems(quota(`limits: {resources: {${'a'.repeat(64)}: 1}}`))).join(),
    /5:\d+: error: .*spec\.limits\.resources: .*Resource names must have at most 63 characters/,
  )
  const expression = 'matchExpressions: [{key: a, operator: Near}]'
  assert.deepEqual(await problems(quota(`limits: {resources: {cpu: 4}}\n  selector: {${expression}}`)), [
    '6:33: error: CapacityQuota q: spec.selector.matchExpressions[0]: has the operator "Near": the quota is not enforced; use In, NotIn, Exists or DoesNotExist',
  ])
})

test('WNT-42 an annotation of a Deployment that cannot be read is refused, with line and field', async () => {
  const deployment = (value: string) => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: { tenon.sh/surge-on-drain: ${value} }
`
  assert.deepEqual(await problems(deployment('"true"')), [])
  for (const value of ['""', 'NaN', '-1', '1e309', '__proto__', 'x'.repeat(10_000)]) {
    const [problem = '', ...others] = await problems(deployment(value))
    assert.match(problem, /tenon\.sh\/surge-on-drain.*cannot be read and is ignored/)
    assert.ok(problem.length < 400)
    assert.equal(others.length, 0)
  }
  assert.deepEqual(await problems('apiVersion: apps/v1\nkind: Deployment\n'), [])
})

test('older kinds are answered with the present ones, foreign kinds are passed over', async () => {
  const object = (apiVersion: string, kind: string) =>
    `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: old}\n`
  const lines = await problems(
    [
      object('karpenter.sh/v1alpha5', 'Provisioner'),
      object('karpenter.k8s.aws/v1alpha1', 'AWSNodeTemplate'),
      object('karpenter.k8s.aws/v1', 'EC2NodeClass'),
      object('karpenter.sh/v1beta1', 'NodePool'),
      object('karpenter.sh/v1', 'NodeOverlay'),
      object('apps/v1', 'Deployment'),
    ].join('---\n'),
  )
  assert.deepEqual(
    lines.map((line) => line.replace(/(; (?:write|use) (?:a node class that Tenon serves: )?\w+).*$/, '$1')),
    [
      '2:7: error: Provisioner old: kind: Provisioner of karpenter.sh/v1alpha5 is not served; write apiVersion',
      '6:7: error: AWSNodeTemplate old: kind: AWSNodeTemplate of karpenter.k8s.aws/v1alpha1 is not served; use a node class that Tenon serves: ExoscaleNodeClass',
      '10:7: error: EC2NodeClass old: kind: EC2NodeClass of karpenter.k8s.aws/v1 is not served; use a node class that Tenon serves: ExoscaleNodeClass',
      '14:7: error: NodePool old: kind: NodePool of karpenter.sh/v1beta1 is not served; write apiVersion',
      '18:7: error: NodeOverlay old: kind: NodeOverlay of karpenter.sh/v1 is not served; write apiVersion',
    ],
  )
})

test('a pool that no instance type satisfies is told why', async () => {
  const key = (name: string, ...values: readonly string[]) =>
    `- {key: ${name}, operator: In, values: [${values.join(', ')}]}`
  const type = 'node.kubernetes.io/instance-type'
  const arm = aPool('a', { requirements: ['', key('kubernetes.io/arch', 'arm64')] })
  assert.deepEqual(await problems(arm), [
    '9:11: error: NodePool a: spec.template.spec.requirements[0]: no instance type of exoscale has kubernetes.io/arch In [arm64]; there are amd64',
  ])
  assert.deepEqual(
    await problems(arm.replaceAll('ExoscaleNodeClass', 'KWOKNodeClass').replace('exoscale.com', 'kwok.sh')),
    [],
  )
  assert.deepEqual(await problems(aPool('a', { kind: 'KWOKNodeClass' }), '--provider', 'kwok'), [])

  const typo = aPool('a', { requirements: ['', key(type, 'standard.mediun', 'standard.large')] })
  assert.match(
    (await problems(typo)).join(),
    /^9:74: warning: .*values\[0\]: no instance type of exoscale has node.kubernetes.io\/instance-type standard\.mediun; did you mean standard\.medium\?$/,
  )

  const zone = key('topology.kubernetes.io/zone', 'de-muc-1')
  const gpu = aPool('a', { requirements: ['', key('exoscale.com/instance-family', 'gpua30'), zone] })
  assert.deepEqual(await problems(gpu), [
    '8:7: error: NodePool a: spec.template.spec.requirements: no instance type of exoscale has all of: exoscale.com/instance-family In [gpua30] (4 types); topology.kubernetes.io/zone In [de-muc-1] (21 types); widen one of them',
  ])
  assert.match(
    (await problems(aPool('a', { requirements: ['', zone] }), '--zone', 'ch-gva-2')).join(),
    /there are ch-gva-2$/,
  )
})

test('minValues, limits and labels of the template are held against the catalogue', async () => {
  const requirements = [
    '',
    '- {key: exoscale.com/instance-family, operator: In, values: [standard, cpu], minValues: 2}',
    '- {key: exoscale.com/instance-size, operator: In, values: [small]}',
  ]
  const template = ['metadata:', '  labels: {kubernetes.io/os: windows}']
  assert.match(
    (await problems(aPool('a', { requirements }))).join(),
    /^9:\d+: error: .*requirements\[0\]\.minValues: only 1 values of exoscale\.com\/instance-family are left/,
  )
  assert.match(
    (await problems(aPool('a', { template }))).join(),
    /labels\["kubernetes.io\/os"\]: no instance type of exoscale has label kubernetes.io\/os=windows; there are linux$/,
  )
  assert.deepEqual(await problems(aPool('a', { spec: ['limits: {memory: 100Mi}'] })), [
    '5:20: warning: NodePool a: spec.limits.memory: no node fits below this limit: the smallest instance type has 512Mi',
  ])
  const unpublished = ['', '- {key: exoscale.com/instance-family, operator: In, values: [gpua30]}']
  assert.deepEqual(await problems(aPool('a', { requirements: unpublished, spec: ['limits: {cpu: 2}'] })), [])
})

test('a pool must name a node class that is among the files, if they hold any of its kind', async () => {
  const nodeClass = (name: string) =>
    `apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: ${name}}\n`
  const pool = aPool('a', { kind: 'KWOKNodeClass' })
  assert.deepEqual(await problems(`${pool}---\n${nodeClass('default')}`), [])
  assert.deepEqual(await problems(`${pool}---\n${nodeClass('other')}`), [
    '7:75: error: NodePool a: spec.template.spec.nodeClassRef.name: there is no KWOKNodeClass default among the files; they hold other',
  ])
  const foreign = pool
    .replace('karpenter.kwok.sh', 'karpenter.k8s.aws')
    .replace('KWOKNodeClass', 'EC2NodeClass')
  assert.match(
    (await problems(foreign)).join(),
    /^7:\d+: warning: .*no provider of Tenon serves EC2NodeClass of karpenter\.k8s\.aws/,
  )
})

test('overlays that contradict each other, or cannot be read, are told', async () => {
  const pool = aPool('a', { kind: 'KWOKNodeClass' })
  const two = [pool, overlay('one', 'price: "1"'), overlay('two', 'price: "2"')].join('---\n')
  const [conflict = '', ...rest] = await problems(two, '--feature-gates', 'NodeOverlay=true')
  assert.match(conflict, /: error: NodeOverlay one: spec\.weight: .*two/)
  assert.deepEqual(rest, [])
  const long = `capacity: {"example.com/${'k'.repeat(64)}": 1}`
  assert.match(
    (await problems(overlay('a', long))).join('\n'),
    /warning: NodeOverlay a: is ignored while feature gate NodeOverlay is off/,
  )
})

test('RPB-27 an overlay with an amount is told where prices have no currency', async () => {
  const pool = aPool('a', { kind: 'KWOKNodeClass' })
    .replace('karpenter.kwok.sh', 'karpenter.clever-cloud.com')
    .replace('KWOKNodeClass', 'CleverNodeClass')
  const text = [pool, overlay('one', 'price: "0.05"')].join('---\n')
  const [wrong = '', ...rest] = await problems(text, '--feature-gates', 'NodeOverlay=true')
  assert.match(wrong, /: error: NodeOverlay one: spec\.price: "0\.05" is an amount, .*no currency/)
  assert.deepEqual(rest, [])
})

test('text that is no manifest is told with its place', async () => {
  assert.match((await problems('a: [\n')).join(), /^\d+:\d+: error: not valid YAML: /)
  assert.deepEqual(await problems('just text'), [
    '1:1: error: not a Kubernetes object; expected the fields apiVersion, kind, metadata',
  ])
  assert.deepEqual(await problems('kind: NodePool\nmetadata: {name: a}'), [
    '1:1: error: field apiVersion is missing',
  ])
  assert.match(
    (await problems(aPool('a').replace('kind: NodePool', 'kind: NodePool\nkind: NodePool'))).join(),
    /^3:1: warning: key "kind" is already set in this map/,
  )
  assert.deepEqual(await problems('---\n# nothing\n'), [])
  assert.deepEqual(
    await problems('apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n'),
    [],
  )
  assert.deepEqual(await problems('apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {}\n'), [
    '1:1: error: field metadata is missing',
  ])
  assert.match((await problems('a: *b\n')).join(), /^1:\d: error: not valid YAML: /)
  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x, x]',
    ...'bcdefg'
      .split('')
      .map((name, i) => `${name}: &${name} [${Array(10).fill(`*${'abcdef'[i]}`).join(', ')}]`),
  ]
  assert.match((await problems(bomb.join('\n'))).join(), /^1:1: error: not valid YAML: Excessive alias count/)
})

test('objects given twice, and those of lists, JSON included', async () => {
  const pool = aPool('a', { kind: 'KWOKNodeClass' })
  assert.deepEqual(await problems(`${pool}---\n${pool}`), [
    '12:18: error: NodePool a: metadata.name: given twice; the first is at stdin:1',
  ])
  const item = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'a' },
    spec: {
      weight: 101,
      template: { spec: { nodeClassRef: { group: 'a.b', kind: 'C', name: 'd' }, requirements: [] } },
    },
  }
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [item] }, null, 1)
  assert.deepEqual(await problems(list), [
    '12:15: error: NodePool a: spec.weight: invalid value: 101: should be less than or equal to 100',
  ])
})

test('directories are read, those below them only when asked, and JSON is printed when asked', async (t) => {
  const bad = aPool('b', { spec: ['weight: 0'] })
  const cwd = await folderWith(t, { 'good.yaml': aPool('a'), 'below/bad.yml': bad, 'notes.txt': 'x' })
  const flat = await runCommand(['validate', '.'], { cwd })
  assert.deepEqual([flat.code, flat.out], [0, ''])
  assert.equal(flat.err, '1 object in 1 file checked; 0 errors, 0 warnings\n')
  const deep = await runCommand(['validate', '.', '-R', '-o', 'json'], { cwd })
  assert.equal(deep.code, 1)
  assert.deepEqual(JSON.parse(deep.out), {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ValidationReport',
    files: 2,
    objects: 2,
    skipped: 0,
    errors: 1,
    warnings: 0,
    problems: [
      {
        severity: 'error',
        file: 'below/bad.yml',
        line: 5,
        column: 11,
        object: 'NodePool b',
        field: 'spec.weight',
        message: 'invalid value: 0: should be greater than or equal to 1',
      },
    ],
  })
})

test('what cannot be read or is asked wrongly exits with 2', async () => {
  for (const [args, message] of [
    [['nowhere.yaml'], /^error: cannot read nowhere\.yaml: no such file or directory/],
    [[], /missing required argument 'path'/],
    [
      ['-', '--provider', 'ovh'],
      /give exoscale, clever-cloud, cluster-api or kwok, the path of a provider module/,
    ],
    [['-', '--feature-gates', 'NodeOverlay'], /--feature-gates: "NodeOverlay": give NAME=true/],
    [
      ['-', '--zone', 'de-mars-1'],
      /^error: --zone: no instance types are known for zone de-mars-1; known zones are ch-gva-2, /,
    ],
  ] as const) {
    const { code, err } = await runCommand(['validate', ...args])
    assert.equal(code, 2, args.join(' '))
    assert.match(err, message)
  }
  const { code, out } = await runCommand(['validate', '--help'])
  assert.equal(code, 0)
  assert.match(out, /Examples:\n {2}tenon validate nodepool\.yaml\n/)
})

test('pools of KWOK are held against an instance-type file, and so is the file itself', async (t) => {
  const offering = (zone: string, more: readonly object[] = []) => ({
    Price: 1,
    Requirements: [
      { key: 'topology.kubernetes.io/zone', operator: 'In', values: [zone] },
      { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
      ...more,
    ],
  })
  const rack = { key: 'example.com/rack', operator: 'In', values: ['r1'] }
  const type = (name: string, offerings: readonly object[]) => ({
    name,
    architecture: 'arm64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings,
  })
  const cwd = await folderWith(t, {
    'pools.yaml': [
      aPool('racked', {
        kind: 'KWOKNodeClass',
        requirements: ['', '- {key: example.com/rack, operator: In, values: [r1]}'],
      }),
      aPool('amd', {
        kind: 'KWOKNodeClass',
        requirements: ['', '- {key: kubernetes.io/arch, operator: In, values: [amd64]}'],
      }),
      aPool('zoned', {
        kind: 'KWOKNodeClass',
        requirements: ['', '- {key: topology.kubernetes.io/zone, operator: In, values: [zone-b, zone-c]}'],
      }),
    ].join('---\n'),
    'types.json': JSON.stringify([
      type('a.large', [offering('zone-a', [rack])]),
      type('b.large', [offering('zone-b'), { Price: -1 }]),
      type('c.large', []),
    ]),
    'none.json': '[]',
  })
  const check = (...args: readonly string[]) => runCommand(['validate', 'pools.yaml', ...args], { cwd })
  const found = await check('--instance-types-file-path', 'types.json')
  assert.equal(found.code, 1)
  const [amd, zone, ...rest] = found.out.split('\n').filter(Boolean)
  assert.match(
    amd ?? '',
    /^pools\.yaml:19:\d+: error: NodePool amd: .*no instance type of kwok has kubernetes\.io\/arch In \[amd64\]; there are arm64$/,
  )
  assert.match(zone ?? '', /warning: NodePool zoned: .*has topology\.kubernetes\.io\/zone zone-c; /)
  assert.deepEqual(rest, [
    'types.json:1:1: error: instance type b.large: offerings[1] is skipped: Price: give a number from 0 to 1000000000, or none if it is not known',
    'types.json:1:1: error: instance type c.large is skipped: offerings: none of them can be used',
  ])
  const env = { INSTANCE_TYPES_FILE_PATH: 'types.json' }
  const byVariable = await runCommand(['validate', 'pools.yaml'], { cwd, env })
  assert.equal(byVariable.out, found.out)
  const builtIn = await check()
  assert.match(builtIn.out, /^pools\.yaml:29:11: error: NodePool zoned: .*; there are test-zone-a, [^\n]*\n$/)
  assert.match(
    (await check('--instance-types-file-path', 'none.json')).out,
    /none\.json:1:1: error: contains no/,
  )
  const missing = await check('--instance-types-file-path', 'nowhere.json')
  assert.equal(missing.code, 2)
  assert.match(missing.err, /cannot read nowhere\.json/)
})

test('the process reads standard input and exits with what was found', () => {
  const main = join(import.meta.dirname, '../../main.ts')
  const input = aPool('a', { spec: ['weight: 0'] })
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'validate', '-'], {
    input,
    encoding: 'utf8',
  })
  assert.equal(status, 1)
  assert.match(stdout, /^stdin:5:11: error: NodePool a: spec\.weight: [^\n]*\n$/)
  assert.equal(stderr, '1 object in 1 file checked; 1 error, 0 warnings\n')
})

test('RPT-22 labels and requirements that contradict each other are told with line, field and fix', async () => {
  const contradicted = aPool('a', {
    template: ['metadata: {labels: {team: a}}'],
    requirements: ['', '- {key: team, operator: In, values: [b]}'],
  })
  assert.deepEqual(await problems(contradicted), [
    '10:11: error: NodePool a: spec.template.spec.requirements[0]: label team: no node satisfies both In [b] and the value "a" of the template\'s label (spec.template.metadata.labels["team"]); change or remove one of them',
  ])
  const least = aPool('b', {
    requirements: [
      '',
      '- {key: size, operator: Gte, values: ["1"], minValues: 3}',
      '- {key: size, operator: Lte, values: ["2"]}',
    ],
  })
  assert.deepEqual(await problems(least), [
    '9:64: error: NodePool b: spec.template.spec.requirements[0].minValues: label size: minValues 3 cannot be met, as labels and requirements admit 2 of its values; write 2 at most, or admit more values',
  ])
  const build = aPool('c', {
    kind: 'KWOKNodeClass',
    requirements: ['', '- {key: node.kubernetes.io/windows-build, operator: In, values: ["10.0"]}'],
  })
  assert.match(
    (await problems(build))[0] ?? '',
    /^9:\d+: error: .*has label node.kubernetes.io\/windows-build/,
  )
})

test('RPT-23 names of pools, node classes and claims that cannot be label values are told', async () => {
  const long = 'n'.repeat(64)
  const [pool = '', ...more] = await problems(aPool(long))
  assert.match(pool, /^3:\d+: error: NodePool n+: metadata\.name: .*; use a name of at most 63 characters/)
  assert.deepEqual(more, [])
  const nodeClass = `apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: ${long}}\nspec: {}\n`
  assert.match((await problems(nodeClass))[0] ?? '', /^3:\d+: error: KWOKNodeClass n+: metadata\.name: /)
  const spec =
    'nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []'
  const claim = `apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: ${long}}\nspec: {${spec}}\n`
  assert.match((await problems(claim))[0] ?? '', /^3:\d+: error: NodeClaim n+: metadata\.name: /)
})

test('RPT-64 quoted texts and flow collections may go on at the indent of what holds them', async () => {
  const lines = aPool('general').split('\n')
  const at = lines.indexOf('spec:')
  const text = [
    'apiVersion: karpenter.sh/v1',
    'kind: NodePool',
    'metadata:',
    '  name: "general"',
    '  annotations:',
    '    a: "first',
    '    second"',
    "    b: 'it''s",
    "    over'",
    '    c: "',
    '      deep',
    '    "',
    '    d: "\\"quoted\\"',
    'at the margin"',
    '  labels: {',
    '  x: y',
    '  }',
    '  finalizers: [',
    '  example.com/a',
    '  ]',
    ...lines.slice(at),
  ].join('\n')
  assert.deepEqual(await problems(text), [])
  const [wrong = ''] = await problems(text.replace('requirements: []', 'requirements: []\n      nonsense: 1'))
  assert.match(wrong, /^\d+:\d+: error: NodePool general: .*nonsense/)
  assert.equal(
    Number(wrong.split(':')[0]),
    text.split('\n').findIndex((line) => line.includes('requirements')) + 2,
  )
})

test('RPT-64 broken text stays broken, at the line where it breaks', async () => {
  for (const [text, line] of [
    ['a: "never closed\nb: 1\n', 3],
    ['a: "x\n---\ny"\n', 1],
    ['a: [1, 2\nb: 3\n', 1],
    ['a: b: c\n', 1],
  ] as const) {
    const [first = ''] = await problems(text)
    assert.match(first, new RegExp(`^${line}:\\d+: error: not valid YAML: `), text)
  }
})

test('RPT-64 a key that is given twice is a warning, and the last one is used', async () => {
  const text = aPool('general').replace('spec:\n', 'spec:\n  weight: 1000\n  weight: 10\n')
  const lines = await problems(text)
  assert.deepEqual(lines, [
    '6:3: warning: key "weight" is already set in this map; the last one is used; remove one of the two',
  ])
})

test('RPT-64 a dangling link costs only itself, is named, and makes the exit code 1', async (t) => {
  const folder = await folderWith(t, {
    'good.yaml': aPool('general'),
    'below/also.yaml': aPool('other'),
    'named.yaml/inner.yaml': aPool('inner'),
  })
  await symlink(join(folder, 'nowhere.yaml'), join(folder, 'link.yaml'))
  const { code, out, err } = await runCommand(['validate', folder, '--recursive'])
  assert.equal(code, 1)
  assert.equal(
    out,
    `${join(folder, 'link.yaml')}:1:1: error: cannot read ${join(folder, 'link.yaml')}: no such file or directory\n`,
  )
  assert.match(err, /^3 objects in 3 files checked; 1 error/)
  const flat = await runCommand(['validate', folder])
  assert.match(flat.err, /^1 object in 1 file checked; 1 error/)
  const named = await runCommand(['validate', join(folder, 'good.yaml'), join(folder, 'gone.yaml')])
  assert.equal(named.code, 1)
  assert.match(named.out, /gone\.yaml:1:1: error: cannot read/)
})

test('SCA-15 NodePools that no controller or two select are named', async () => {
  const labelled = (name: string, labels: string) =>
    aPool(name).replace(`{name: ${name}}`, `{name: ${name}, labels: {${labels}}}`)
  const pools = [
    labelled('one', 'team: a'),
    labelled('none', 'team: c'),
    labelled('both', 'team: a, gpu: yes'),
  ]
  const args = ['--node-pools', 'team=a', '--node-pools', 'gpu=yes']
  const found = (await problems(pools.join('---\n').replaceAll('yes', '"yes"'), ...args)).filter((line) =>
    line.includes('--node-pools'),
  )
  assert.deepEqual(
    found.map((line) => line.replace(/^\d+:\d+: /, '')),
    [
      'warning: NodePool none: metadata.labels: its labels match no selector (--node-pools) of team=a, gpu=yes: no controller launches nodes for it',
      'warning: NodePool both: metadata.labels: its labels match the selectors (--node-pools) of team=a, gpu=yes: the first that takes it serves it',
    ],
  )
})

test('WNT-30 WNT-42 disruption windows that cannot be read are named where they stand', async () => {
  const hostile = [
    '""',
    '"on weekends"',
    '__proto__',
    '"NaN"',
    '-1',
    '1e309',
    'true',
    `"${'x'.repeat(10_000)}"`,
  ]
  for (const value of hostile) {
    const metadata = `metadata: {name: web, annotations: {tenon.sh/disruption-windows: ${value}}}`
    const namespace = `apiVersion: v1\nkind: Namespace\n${metadata}\n`
    const template = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    ${metadata}\n`
    const [ofNamespace, ofTemplate, ...others] = await problems(`${namespace}---\n${template}`)
    const text =
      /annotations\["tenon.sh\/disruption-windows"\]: it cannot be read and is ignored: .*; use windows/
    assert.match(ofNamespace ?? '', text, value.slice(0, 20))
    assert.match(ofTemplate ?? '', /spec\.template\.metadata\.|\.\.\./)
    assert.match(ofTemplate ?? '', text)
    assert.deepEqual(others, [])
  }
  const good =
    'apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {tenon.sh/disruption-windows: "06:00-07:00"}}\n'
  assert.deepEqual(await problems(good), [])
})
