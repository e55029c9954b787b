import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { allFlags } from './flag-groups.ts'
import { flagHelp, flagsPage } from './flag-help.ts'
import { defaultOptions } from './options.ts'
import { type OptionsAsked, readOptions } from './read-options.ts'

const clouds = ['acme', 'other']
const minute = 60_000

type Read = Extract<OptionsAsked, { kind: 'options' }>

function asked(...args: readonly string[]): OptionsAsked {
  return readOptions(args, clouds)
}

function options(...args: readonly string[]): Read {
  const read = asked(...args)
  assert.equal(read.kind, 'options', 'message' in read ? read.message : read.kind)
  return read
}

/** `usage: …` or `fatal: …`. */
function refusal(...args: readonly string[]): string {
  const read = asked(...args)
  return 'message' in read ? `${read.kind}: ${read.message}` : read.kind
}

const sheet = new URL('../../../../docs/behaviour/cluster-autoscaler.md', import.meta.url)

/** Names of the first column of the table of section 8; those that begin with a dash or dots are endings. */
function flagsOfSheet(): readonly string[] {
  const [, section = ''] = readFileSync(sheet, 'utf8').split(/^## 8\. .*$/m)
  const [table = ''] = section.split(/^## 9\. /m)
  const rows = table.split('\n').filter((line) => line.startsWith('|') && line.includes('`'))
  return rows.flatMap((row) =>
    Array.from((row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g), ([, name = '']) => name).filter(
      (name) => !['text', 'json', 'false', 'cluster-autoscaler'].includes(name),
    ),
  )
}

test('every flag of the sheet is known', () => {
  const names = flagsOfSheet()
  assert.ok(names.length > 140, `${names.length} names`)
  const known = allFlags.map(({ flag }) => flag)
  const unknown = names.filter((name) => {
    const ending = name.replace(/^…/, '').replace(/\*$/, '')
    return !known.some(
      (flag) => flag === name || (/^[-…]/.test(name) ? flag.endsWith(ending) : flag.startsWith(ending)),
    )
  })
  assert.deepEqual(unknown, [])
  assert.equal(new Set(known).size, known.length)
})

test('without flags, defaults hold', () => {
  const { autoscaler, process, warnings } = options()
  assert.deepEqual(autoscaler, defaultOptions)
  assert.deepEqual(warnings, [])
  assert.deepEqual(process, {
    cloudProvider: 'acme',
    discoverySpecs: [],
    anyMachinePoolVictim: false,
    nodeGroupSpecs: [],
    allowsEmptyGroups: false,
    acceptsClusterIdentity: false,
    leaseName: 'cluster-autoscaler',
    listen: { host: '', port: 8085 },
    kubeconfig: '',
    kubernetes: undefined,
    rate: { perSecond: 5, burst: 10 },
    leaderElection: {
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2000,
    },
    logs: { verbosity: 0, format: 'text', file: '', standardErrorFrom: 'INFO' },
    isProfiling: false,
    servesSnapshots: false,
    schedulerConfigFile: '',
  })
})

test('CAS-105 the arguments of the example manifest are taken, without a warning', () => {
  const { process, autoscaler, warnings } = options(
    '--cloud-provider=acme',
    '--stderrthreshold=info',
    '--cordon-node-before-terminating',
  )
  assert.equal(process.cloudProvider, 'acme')
  assert.equal(autoscaler.scaleDown.cordonNodeBeforeTerminating, true)
  assert.deepEqual(warnings, [])
})

test('CAS-106 the arguments that the chart passes are taken', () => {
  const { process, autoscaler, warnings } = options(
    '--cloud-provider=acme',
    '--namespace=web',
    '--nodes=1:10:your-pool',
    '--nodes=2:5:a:b',
    '--logtostderr=true',
    '--stderrthreshold=info',
    '--v=4',
  )
  assert.deepEqual(process.nodeGroupSpecs, ['1:10:your-pool', '2:5:a:b'])
  assert.equal(autoscaler.status.namespace, 'web')
  assert.equal(process.logs.verbosity, 4)
  assert.deepEqual(warnings, [])
})

test('CAS-107 max-empty-bulk-delete alone is taken over as parallelism, with a warning', () => {
  const alone = options('--max-empty-bulk-delete=3')
  assert.equal(alone.autoscaler.scaleDown.maxParallelism, 3)
  assert.match(alone.warnings.join(), /--max-empty-bulk-delete .*--max-scale-down-parallelism/)
  const both = options('--max-empty-bulk-delete=3', '--max-scale-down-parallelism', '7')
  assert.equal(both.autoscaler.scaleDown.maxParallelism, 7)
})

test('CAS-108 names may be written with underscores; unknown flags and bad values are told', () => {
  assert.equal(options('--scale_down_unneeded_time=1m').autoscaler.scaleDown.unneededTimeMs, minute)
  assert.equal(options('--skip-nodes-with_system-pods=F').autoscaler.scaleDown.skipNodesWithSystemPods, false)
  assert.equal(refusal('--bogus'), 'usage: unknown flag --bogus')
  assert.equal(
    refusal('--scan-intervall=5s'),
    'usage: unknown flag --scan-intervall, did you mean --scan-interval?',
  )
  assert.equal(refusal('-nodes=1:2:x'), 'usage: unknown flag -nodes')
  assert.equal(
    refusal('--scan-interval=PT5M'),
    'usage: --scan-interval=PT5M: give a duration such as 10s or 1m30s',
  )
  assert.equal(refusal('--max-nodes-total=ten'), 'usage: --max-nodes-total=ten: give a whole number')
  assert.equal(refusal('--leader-elect=yes'), 'usage: --leader-elect=yes: give true or false')
  assert.equal(
    refusal('--scale-down-utilization-threshold=half'),
    'usage: --scale-down-utilization-threshold=half: give a number',
  )
  assert.equal(refusal('--nodes'), 'usage: --nodes needs a value')
})

test('values stand behind = or a space, those of booleans behind = only; other words are passed over', () => {
  const { autoscaler, process } = options(
    '--scan-interval',
    '1m30s',
    '--leader-elect',
    'false',
    'word',
    '--status-taint',
    'a',
    '--status-taint=b',
    '--bypassed-scheduler-names=x,y',
    '-v',
    '5',
    '--',
    '--bogus',
  )
  assert.equal(autoscaler.loop.scanIntervalMs, 90_000)
  assert.ok(process.leaderElection)
  assert.deepEqual(autoscaler.taints.statusTaints, ['a', 'b'])
  assert.deepEqual(autoscaler.loop.bypassedSchedulerNames, ['x', 'y'])
  assert.equal(process.logs.verbosity, 5)
  for (const short of ['-v=3', '-v3', '--v=3']) assert.equal(options(short).process.logs.verbosity, 3)
  for (const word of ['1', 't', 'T', 'TRUE', 'true', 'True'])
    assert.equal(options(`--parallel-scale-up=${word}`).autoscaler.scaleUp.parallelScaleUp, true)
  for (const word of ['0', 'f', 'F', 'FALSE', 'false', 'False'])
    assert.equal(options(`--leader-elect=${word}`).process.leaderElection, undefined)
})

test('CAS-109 drain priorities and a maximum of graceful termination exclude each other', () => {
  assert.match(
    refusal('--drain-priority-config=100:30,0:60', '--max-graceful-termination-sec=600'),
    /^fatal: --drain-priority-config and --max-graceful-termination-sec exclude each other/,
  )
  for (const malformed of ['100', 'a:1', '1:b', '1:2,', '1:2,1:3'])
    assert.match(refusal(`--drain-priority-config=${malformed}`), /^fatal: .*give PRIORITY:SECONDS/)
  assert.deepEqual(options('--drain-priority-config=100:30,0:60').autoscaler.scaleDown.drainPriorities, [
    { priority: 0, graceSeconds: 60 },
    { priority: 100, graceSeconds: 30 },
  ])
})

test('CAS-20 the expander price is refused', () => {
  assert.match(refusal('--expander=price'), /^fatal: --expander: price needs prices/)
})

test('CAS-57 a list of expanders is kept in its order', () => {
  assert.deepEqual(options('--expander=priority,least-waste').autoscaler.scaleUp.expanders, [
    'priority',
    'least-waste',
  ])
})

test('CAS-58 nothing may follow random, and no expander may stand there twice', () => {
  assert.match(refusal('--expander=random,least-waste'), /^fatal: --expander: random always decides/)
  assert.match(
    refusal('--expander=least-waste,least-waste'),
    /^fatal: --expander: least-waste stands there twice/,
  )
  assert.match(refusal('--expander=cheapest'), /^fatal: --expander: cheapest is not known/)
  assert.match(refusal('--expander='), /^fatal: --expander: a name is empty/)
  assert.match(refusal('--expander=grpc'), /--grpc-expander-url/)
  assert.match(refusal('--expander=grpc', '--grpc-expander-url=x:1'), /--grpc-expander-cert/)
  assert.deepEqual(options('--expander=least-nodes,random').autoscaler.scaleUp.expanders, [
    'least-nodes',
    'random',
  ])
})

test('what cannot be used ends the start with the flag and the fix', () => {
  const refused: readonly (readonly [args: string, message: RegExp])[] = [
    ['--cloud-provider=gce', /--cloud-provider=gce: this cloud is not known here; give acme or other/],
    ['--cores-total=8:4', /--cores-total=8:4: give MIN:MAX/],
    ['--memory-total=-1:4', /--memory-total=-1:4: give MIN:MAX/],
    ['--gpu-total=nvidia', /--gpu-total=nvidia: give TYPE:MIN:MAX/],
    ['--estimator=oldest', /give binpacking/],
    ['--predicate-parallelism=0', /give 1 or more/],
    ['--leader-elect-resource-lock=endpoints', /give leases/],
    ['--leader-elect-lease-duration=5s', /--leader-elect-lease-duration must be more/],
    ['--leader-elect-retry-period=10s', /--leader-elect-renew-deadline must be more/],
    ['--address=8085', /give HOST:PORT/],
    ['--address=:99999', /give HOST:PORT/],
    ['--logging-format=xml', /give text or json/],
    ['--stderrthreshold=4', /give INFO, WARNING, ERROR, FATAL or 0 to 3/],
    ['--kubernetes=host', /give a URL/],
  ]
  for (const [arg, message] of refused) {
    assert.match(refusal(arg), message)
    assert.match(refusal(arg), /^fatal: /)
  }
  assert.match(
    refusal('--bypassed-scheduler-names=a,b', '--allowed-scheduler-names=b,c'),
    /^fatal: --bypassed-scheduler-names: a must be in/,
  )
})

test('flags without an effect are warned about once each, when they ask for something', () => {
  const { warnings } = options(
    '--node-group-auto-discovery=a',
    '--node-group-auto-discovery=b',
    '--cloud-provider-gce-lb-src-cidrs=10.0.0.0/8',
    '--cloud-provider-gce-l7lb-src-cidrs=10.0.0.0/8',
    '--capacity-quotas-enabled=false',
    '--async-node-groups',
    '--parallel-drain',
    '--user-agent=me',
    '--gpu-total=nvidia-tesla-t4:0:4',
    '--enable-dynamic-resource-allocation=false',
  )
  assert.deepEqual(
    warnings.map((text) => text.split(' ')[0] ?? '').toSorted((a, b) => (a < b ? -1 : 1)),
    [
      '--async-node-groups',
      '--cloud-provider-gce-*',
      '--enable-dynamic-resource-allocation=false',
      '--gpu-total',
      '--node-group-auto-discovery',
      '--parallel-drain',
    ],
  )
})

test('a flag that another cloud reads is accepted with a warning', () => {
  const flags = ['--clusterapi-machinepool-any-victim', '--gpu-total=a100:0:4', '--cloud-config=/etc/cloud']
  const read = (cloud: string) => readOptions([...flags, `--cloud-provider=${cloud}`], ['acme', 'clusterapi'])
  const acme = read('acme')
  assert.ok(acme.kind === 'options')
  assert.deepEqual(acme.warnings, [
    '--clusterapi-machinepool-any-victim has no effect with --cloud-provider=acme: only clusterapi reads it',
    '--gpu-total has no effect with --cloud-provider=acme: only clusterapi reads it',
  ])
  assert.equal(acme.process.management, undefined)
  const own = read('clusterapi')
  assert.ok(own.kind === 'options')
  assert.deepEqual(own.warnings, [])
  assert.deepEqual(own.process.management, { kubeconfig: '/etc/cloud', isAuthoritative: false })
  assert.equal(own.process.anyMachinePoolVictim, true)
  assert.deepEqual(own.autoscaler.scaleUp.gpus, [{ type: 'a100', min: 0, max: 4 }])
  assert.deepEqual(own.autoscaler.scaleDown.gpus, own.autoscaler.scaleUp.gpus)
})

test('with Cluster API, discovery specs are passed on as given and --nodes is warned about', () => {
  const specs = ['clusterapi:namespace=a,clusterName=c', 'clusterapi:']
  const flags = [...specs.map((spec) => `--node-group-auto-discovery=${spec}`), '--nodes=1:2:md']
  const read = readOptions([...flags, '--cloud-provider=clusterapi'], ['acme', 'clusterapi'])
  assert.ok(read.kind === 'options')
  assert.deepEqual(read.process.discoverySpecs, specs)
  assert.deepEqual(read.warnings, [
    '--nodes has no effect with --cloud-provider=clusterapi: the annotations of its objects set minimum and maximum',
  ])
})

test('CAS-108 an empty cloud and gates that are no gates end the start; gates have no effect, which is told', () => {
  assert.match(
    refusal('--cloud-provider='),
    /^fatal: --cloud-provider is empty; give acme or other, or take it out/,
  )
  assert.match(refusal('--feature-gates=A=true,B'), /^fatal: --feature-gates: B is no gate; give NAME=true/)
  assert.match(refusal('--feature-gates=A=yes'), /^fatal: --feature-gates: A=yes is no gate/)
  const { warnings } = options('--feature-gates=DynamicResourceAllocation=true, AllAlpha=false')
  assert.deepEqual(warnings, ['--feature-gates has no effect: there are none'])
  assert.deepEqual(options('--feature-gates=').autoscaler, defaultOptions)
})

test('CAS-108 --alsologtostderrthreshold is what --alsologtostderr writes at least', () => {
  const from = (...args: readonly string[]) =>
    options('--logtostderr=false', '--log-file=/var/log/ca', '--stderrthreshold=ERROR', ...args).process.logs
      .standardErrorFrom
  assert.equal(from('--alsologtostderrthreshold=WARNING'), 'ERROR')
  assert.equal(from('--alsologtostderr'), 'INFO')
  assert.equal(from('--alsologtostderr', '--alsologtostderrthreshold=WARNING'), 'WARNING')
  assert.equal(from('--alsologtostderr', '--alsologtostderrthreshold=FATAL'), 'ERROR')
  assert.match(refusal('--alsologtostderrthreshold=9'), /^fatal: --alsologtostderrthreshold=9: give INFO/)
})

test('CAS-35 the start has as long as the longest of the other times, with a warning', () => {
  const { autoscaler, warnings } = options(
    '--max-inactivity=10m',
    '--max-failing-time=15m',
    '--max-startup-time=5m',
  )
  assert.equal(autoscaler.status.maxStartupTimeMs, 15 * minute)
  assert.match(warnings.join(), /--max-startup-time=5m is less than/)
})

test('memory is in GiB, and limits are those of scale-up and scale-down alike', () => {
  const { scaleUp, scaleDown } = options('--memory-total=1:4', '--cores-total=0:16').autoscaler
  assert.deepEqual(scaleUp.memory, { min: 2 ** 30, max: 4 * 2 ** 30 })
  assert.deepEqual([scaleDown.memory, scaleDown.cores], [scaleUp.memory, { min: 0, max: 16 }])
})

test('where the API server is can be told by a URL with settings', () => {
  const addressOf = (text: string) => options(`--kubernetes=${text}`).process.kubernetes
  assert.deepEqual(addressOf('https://api.example.com:6443?inClusterConfig=false&useServiceAccount=true'), {
    server: 'https://api.example.com:6443',
    isInCluster: false,
    usesServiceAccount: true,
  })
  assert.deepEqual(addressOf('http://127.0.0.1:8080/proxy?auth=/etc/config'), {
    server: 'http://127.0.0.1:8080/proxy',
    kubeconfig: '/etc/config',
    isInCluster: true,
    usesServiceAccount: false,
  })
  assert.equal(addressOf(''), undefined)
})

test('a file takes the log unless standard error is asked for', () => {
  const logs = (...args: readonly string[]) => options(...args).process.logs
  const file = ['--logtostderr=false', '--log-file=/var/log/ca', '--stderrthreshold=2']
  assert.deepEqual(logs('--log-file=/var/log/ca').file, '')
  assert.deepEqual(logs(...file), {
    verbosity: 0,
    format: 'text',
    file: '/var/log/ca',
    standardErrorFrom: 'ERROR',
  })
  assert.equal(logs(...file, '--alsologtostderr').standardErrorFrom, 'INFO')
  assert.equal(logs('--logging-format=json').format, 'json')
})

test('help names every flag with what it does here', () => {
  assert.equal(asked('--scan-interval=x', '--help').kind, 'usage')
  assert.equal(asked('--help').kind, 'help')
  const text = flagHelp('tenon cluster-autoscaler', clouds)
  for (const { flag } of allFlags) assert.ok(text.includes(`--${flag}`), flag)
  assert.match(text, /--scan-interval duration {2}\(default 10s\)\n {6}pause between two loops\n/)
  assert.match(text, /--cluster-name text {2}\(accepted, changes nothing\)/)
  assert.match(text, /--parallel-drain {2}\(default true; accepted with a warning, no effect\)/)
  assert.deepEqual(
    text.split('\n').filter((line) => line.length > 110),
    [],
  )
})

test('docs/cluster-autoscaler/flags.md has every flag as it is', () => {
  const page = new URL('../../../../docs/cluster-autoscaler/flags.md', import.meta.url)
  assert.equal(readFileSync(page, 'utf8'), flagsPage())
})
