/** What holds for every command, whatever it does: a command without a row here fails (EXP-29). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TraceFile, writeSnapshot } from '@tenon/ask'
import type { Command } from 'commander'
import { snapshot } from '../testing/snapshot.test-support.ts'
import { quietIo } from '../testing/quiet-io.test-support.ts'
import { createProgram } from '../program.ts'
import { aPoolCluster } from '../testing/pool-cluster.test-support.ts'
import { runCommand } from '../testing/command.test-support.ts'

interface Row {
  /** A name that does not exist, and what is said of it. */
  readonly unknown: readonly [args: string, err: RegExp, code?: number]
  /** Something that it prints without a controller, or why that is not tried. */
  readonly prints: string | { readonly not: string }
  /** Words behind which names of the cluster come, and one of them. */
  readonly completes?: readonly [words: string, name: string]
}

const provider =
  /^error: --provider=nowhere: give exoscale, .*, the path of a provider module such as .*, or an installed package\n$/
const context = /^error: kubeconfig .* has no context nowhere: choose one of tenon\n$/
const pool = /(^|\n)Error from server \(NotFound\): nodepools\.karpenter\.sh "nowhere" not found\n$/
const manifest = /^error: cannot read nowhere\.yaml: no such file or directory\n$/
const file = /nowhere.*ENOENT: no such file or directory/

const server = { not: 'it serves until Ctrl-C' }
const order = { not: 'it changes the cluster; its own tests run it' }
const another = { not: 'its own tests run it, on a cluster that has what it needs' }

const rows: Readonly<Record<string, Row>> = {
  up: { unknown: ['up --provider nowhere', provider], prints: server },
  devcluster: { unknown: ['devcluster --provider nowhere', provider], prints: server },
  controller: { unknown: ['controller --provider nowhere', provider, 2], prints: 'controller --help' },
  'cluster-autoscaler': {
    unknown: [
      'cluster-autoscaler --kubeconfig nowhere',
      /^error: kubeconfig nowhere does not exist: check --kubeconfig or KUBECONFIG\n$/,
      255,
    ],
    prints: 'cluster-autoscaler --help',
  },
  crds: { unknown: ['crds --provider nowhere', provider], prints: 'crds' },
  'crds diff': { unknown: ['crds diff --context nowhere', context, 2], prints: another },
  'crds apply': { unknown: ['crds apply --context nowhere', context, 2], prints: order },
  validate: { unknown: ['validate nowhere.yaml', manifest, 2], prints: 'validate pool.yaml -o json' },
  init: { unknown: ['init --provider nowhere', provider], prints: another },
  preflight: { unknown: ['preflight --provider nowhere', provider], prints: 'preflight --provider kwok' },
  test: {
    unknown: ['test nowhere', /^error: cannot read nowhere: no such file or directory\n$/, 2],
    prints: 'test .',
  },
  explain: {
    unknown: ['explain nodepool/nowhere', pool],
    prints: 'explain node/n1 -s cluster.jsonl',
    completes: ['explain nodepool', 'web'],
  },
  console: { unknown: ['console --snapshot nowhere', file], prints: server },
  'snapshot save': {
    unknown: ['snapshot save x.jsonl --context nowhere', context],
    prints: 'snapshot save copy.jsonl -s cluster.jsonl',
  },
  'snapshot show': { unknown: ['snapshot show nowhere', file], prints: 'snapshot show cluster.jsonl' },
  'snapshot redact': {
    unknown: ['snapshot redact nowhere x.jsonl', file],
    prints: 'snapshot redact cluster.jsonl x.jsonl',
  },
  simulate: {
    unknown: ['simulate --delete nodepool/nowhere', pool],
    prints: 'simulate -s cluster.jsonl',
    completes: ['simulate --delete nodepool/', 'nodepool/web'],
  },
  journal: {
    unknown: ['journal --context nowhere', context],
    prints: another,
    completes: ['journal --nodepool', 'web'],
  },
  record: { unknown: ['record -o x.tnr --context nowhere', context], prints: another },
  replay: { unknown: ['replay nowhere.tnr', file], prints: 'replay hour.tnr' },
  get: {
    unknown: ['get nodepool nowhere', pool],
    prints: 'get nodes -s cluster.jsonl',
    completes: ['get nodepool', 'web'],
  },
  cost: {
    unknown: ['cost --by nowhere', /Allowed choices are nodepool, namespace, owner, type, zone/],
    prints: 'cost -s cluster.jsonl',
  },
  report: { unknown: ['report -s nowhere', file], prints: 'report -s cluster.jsonl' },
  completion: {
    unknown: ['completion nowhere', /Allowed choices are bash, zsh, fish, powershell/],
    prints: 'completion bash',
  },
  pause: { unknown: ['pause nodepool/nowhere', pool], prints: order, completes: ['pause', 'nodepool/web'] },
  resume: {
    unknown: ['resume nodepool/nowhere', pool],
    prints: order,
    completes: ['resume', 'nodepool/web'],
  },
  migrate: {
    unknown: [
      'migrate --from nowhere a --to nodepool web',
      /^error: --from: "nowhere" is unknown: use nodepool, or sks-nodepool\n$/,
    ],
    prints: another,
    completes: ['migrate --to', 'nodepool/web'],
  },
  'rollout status': {
    unknown: ['rollout status nodepool/nowhere', pool],
    prints: 'rollout status nodepool/web --watch=false',
    completes: ['rollout status', 'nodepool/web'],
  },
  'rollout pause': {
    unknown: ['rollout pause nodepool/nowhere', pool],
    prints: order,
    completes: ['rollout pause nodepool', 'web'],
  },
  'rollout resume': {
    unknown: ['rollout resume nodepool/nowhere', pool],
    prints: order,
    completes: ['rollout resume', 'nodepool/web'],
  },
  'rollout undo': {
    unknown: ['rollout undo nodepool/nowhere', pool],
    prints: order,
    completes: ['rollout undo', 'nodepool/web'],
  },
  schema: {
    unknown: ['schema nowhere', /^error: no schema is named nowhere; tenon schema lists all\n$/],
    prints: 'schema PodExplanation',
  },
  view: { unknown: ['view --once --snapshot nowhere', file], prints: 'view --once -s cluster.jsonl' },
  version: { unknown: ['version --nowhere', /unknown option '--nowhere'/], prints: 'version' },
}

const io = quietIo()

/** Commands by their words; those that only hold others have no arguments and no options of their own. */
function named(command: Command, words: readonly string[]): readonly string[] {
  return command.commands.flatMap((each) => {
    if (each.name().startsWith('__') || each.name() === 'help') return []
    const own = [...words, each.name()]
    const isGroup = each.commands.length > 0 && each.registeredArguments.length + each.options.length === 0
    return [...(isGroup ? [] : [own.join(' ')]), ...named(each, own)]
  })
}

test('EXP-29 every command has a row here', async () => {
  assert.deepEqual(Object.keys(rows).toSorted(), named(await createProgram(io), []).toSorted())
})

test('PGE-14 no help tells that a list is empty by default', async () => {
  const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(all)]
  const helps = all(await createProgram(io)).map((command) => command.helpInformation())
  assert.ok(helps.some((help) => help.includes('can be repeated')))
  assert.deepEqual(
    helps.filter((help) => help.includes('(default: [])')),
    [],
  )
})

test('PGE-14 tenon --version prints the version, as tenon version does', async () => {
  const { code, out } = await runCommand(['--version'])
  assert.deepEqual([code, out], [0, (await runCommand(['version'])).out])
  assert.match(out, /^v\d+\.\d+\.\d+/)
})

let cwd: string

before(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'tenon-every-'))
  await writeSnapshot(join(cwd, 'cluster.jsonl'), snapshot)
  await writeFile(join(cwd, 'pool.yaml'), nodePool)
  await writeFile(join(cwd, 'pool.tenon-test.yaml'), testCase)
  const recording = await TraceFile.create(join(cwd, 'hour.tnr'))
  recording.write({ kind: 'session', atMs: 0, program: 'tenon test', source: 'https://example.com' })
  recording.write({ kind: 'alive', atMs: 60_000 })
  await recording.close()
})

after(() => rm(cwd, { recursive: true }))

const nodePool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
---
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
`
const testCase = `apiVersion: tenon.sh/v1alpha1
kind: TestCase
metadata: {name: web runs}
given: {files: [pool.yaml]}
when: [{pods: {name: web, count: 1, requests: {cpu: "1"}}}]
expect: {running: all}
`

test('EXP-29 PGE-14 every command names what it does not find after one prefix, and exits with its code', async (t) => {
  const { kubeconfig } = await aPoolCluster(t)
  for (const { unknown } of Object.values(rows)) {
    const [args, text, expected = 1] = unknown
    const { code, out, err } = await runCommand(args.split(' '), { cwd, env: { KUBECONFIG: kubeconfig } })
    assert.match(err, text, args)
    assert.match(err, /^(error: |Error from server|Warning: )/m, `PGE-14 one prefix: ${args}`)
    assert.deepEqual([code, out], [expected, ''], `${args}: ${err}`)
  }
})

test('EXP-29 every command that takes names of the cluster completes them', async (t) => {
  const { kubeconfig } = await aPoolCluster(t)
  for (const { completes } of Object.values(rows)) {
    if (completes === undefined) continue
    const [words, name] = completes
    // What ends in a slash is typed so far; behind other words the next one begins.
    const typed = words.endsWith('/') ? words.split(' ') : [...words.split(' '), '']
    const { out, err } = await runCommand(['__complete', '--', ...typed], { env: { KUBECONFIG: kubeconfig } })
    assert.deepEqual([out.split('\n').includes(name), err], [true, ''], `${words}: ${out}`)
  }
})

/** Rows that print, with what they print. */
const printing = Object.values(rows).flatMap(({ prints }) =>
  typeof prints === 'string' ? [prints.split(' ')] : [],
)

test('EXP-29 with NO_COLOR no command prints a colour on a terminal', async (t) => {
  const { kubeconfig } = await aPoolCluster(t)
  for (const args of printing) {
    const env = { KUBECONFIG: kubeconfig, NO_COLOR: '1', TERM: 'xterm-256color' }
    const { out, err } = await runCommand(args, { cwd, env, isTerminal: true })
    assert.notEqual(out, '', `${args.join(' ')}: ${err}`)
    assert.ok(!/^\[[\d;]*m/m.test(escapes(out + err)), args.join(' '))
  }
})

/** What follows each escape character. */
function escapes(text: string): string {
  return text.split(String.fromCodePoint(27)).slice(1).join('\n')
}

describe('a closed pipe', { concurrency: 2 }, () => {
  for (const args of printing)
    test(`EXP-29 tenon ${args.join(' ')} says nothing when nobody reads on`, async (t) => {
      const { kubeconfig } = await aPoolCluster(t)
      const { NODE_COMPILE_CACHE = '', PATH = '' } = process.env
      const child = spawn(process.execPath, [join(import.meta.dirname, '../main.ts'), ...args], {
        cwd,
        env: { PATH, HOME: cwd, KUBECONFIG: kubeconfig, NODE_COMPILE_CACHE },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      child.stdout.destroy()
      let err = ''
      child.stderr.on('data', (part: Buffer) => (err += part.toString()))
      const [, signal] = (await once(child, 'close')) as [number | null, string | null]
      assert.equal(signal, null)
      // Notes about the answer are no complaint about the pipe.
      assert.doesNotMatch(err, /EPIPE|Error|^tenon:|\n {4}at /, err)
    })
})
