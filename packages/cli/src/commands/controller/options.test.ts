import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defaultSettings } from '@tenon/operator'
import { CliError } from '../../errors.ts'
import type { Providers } from '../../load-provider.ts'
import { builtInProviders } from '../../providers.ts'
import { type ControllerOptions, controllerOptions, decisionSettings } from './options.ts'

type Env = Readonly<Record<string, string>>

const kwok = builtInProviders.find(({ name }) => name === 'kwok')
const providers: Providers = { all: builtInProviders, ...(kwok && { chosen: kwok }) }

/** In a pod of kube-system by default. */
function options(
  args: readonly string[],
  env: Env = {},
  podNamespace: string | undefined = 'kube-system',
): ControllerOptions {
  const read = controllerOptions(['--provider=kwok', ...args], env, providers, podNamespace)
  assert.ok(read !== 'help')
  return read
}

const settings = (args: readonly string[], env: Env = {}) => options(args, env).settings

/** What a start that fails says; it exits with code 2. */
function complaint(args: readonly string[], env: Env = {}): string {
  try {
    options(args, env)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    assert.equal(error.exitCode, 2)
    return error.message
  }
  return 'none'
}

/** The variables that a start warns of. */
const warned = (env: Env, args: readonly string[] = []) =>
  options(args, env).warnings.map(({ fields }) => fields['variable'] ?? fields['gate'] ?? fields['option'])

describe('defaults and where options come from', () => {
  test('OPS-1 without flags and variables the defaults hold', () => {
    const read = options([])
    assert.deepEqual(
      [read.metricsPort, read.healthProbePort, read.rate],
      [8080, 8081, { perSecond: 200, burst: 300 }],
    )
    assert.deepEqual([read.settings.batchMaxMs, read.settings.batchIdleMs], [10_000, 1000])
    assert.deepEqual(read.leaderElection, { namespace: 'kube-system', name: 'karpenter-leader-election' })
    const { nodeRepair, reservedCapacity, spotToSpotConsolidation, nodeOverlay, staticCapacity } =
      read.settings.featureGates
    assert.deepEqual(
      [nodeRepair, reservedCapacity, spotToSpotConsolidation, nodeOverlay, staticCapacity],
      [false, true, false, false, false],
    )
    const lease = { namespace: 'kube-system', name: 'karpenter-leader-election' }
    const identity = { isAccepted: false, lease }
    assert.deepEqual(read.settings, { ...defaultSettings, brakeNamespace: 'kube-system', identity })
    assert.deepEqual([read.logLevel, read.logOutputs, read.logErrorOutputs], ['info', 'stdout', 'stderr'])
    assert.deepEqual([read.isProfiling, read.memoryLimitBytes, read.warnings], [false, 0, []])
  })

  test('OPS-2 a variable that is not a number leaves the default, with a warning that names it; a flag ends the start', () => {
    const read = options([], { METRICS_PORT: 'abc' })
    assert.equal(read.metricsPort, 8080)
    assert.deepEqual(read.warnings, [
      {
        message: 'ignoring an invalid environment variable',
        fields: { variable: 'METRICS_PORT', value: 'abc', using: '8080', fix: 'use an integer' },
      },
    ])
    assert.equal(complaint(['--metrics-port=abc']), '--metrics-port=abc: use an integer')
  })

  test('OPS-3 a flag beats its variable', () => {
    assert.equal(options(['--metrics-port=2'], { METRICS_PORT: '1' }).metricsPort, 2)
  })

  test('OPS-4 values that are not on offer end the start, from a variable too', () => {
    assert.equal(complaint([], { LOG_LEVEL: 'hello' }), 'LOG_LEVEL=hello: give debug or info or error')
    assert.match(
      complaint([], { PREFERENCE_POLICY: 'Foo' }),
      /^PREFERENCE_POLICY=Foo: give Respect or Ignore/,
    )
    assert.match(
      complaint([], { MIN_VALUES_POLICY: 'Loose' }),
      /^MIN_VALUES_POLICY=Loose: give Strict or BestEffort/,
    )
    assert.match(complaint(['--log-level', 'warn']), /^--log-level=warn:/)
  })

  test('OPS-5 an empty log level means info', () => {
    assert.equal(options([], { LOG_LEVEL: '' }).logLevel, 'info')
    assert.equal(options(['--log-level='], { LOG_LEVEL: 'debug' }).logLevel, 'info')
  })

  test('OPS-6 CPU requests of nothing or less count as one core', () => {
    for (const text of ['0', '-50'])
      assert.equal(settings([], { CPU_REQUESTS: text }).cpuRequestsMillis, 1000, text)
    assert.equal(settings([], { CPU_REQUESTS: '2500' }).cpuRequestsMillis, 2500)
  })

  test('OPS-10 a variable knows more words for true than a flag', () => {
    assert.equal(options([], { DISABLE_LEADER_ELECTION: '1' }).leaderElection, undefined)
    assert.equal(complaint(['--disable-leader-election=1']), '--disable-leader-election=1: use true or false')
    for (const text of ['t', 'T', 'true', 'TRUE', 'True'])
      assert.equal(options([], { ENABLE_PROFILING: text }).isProfiling, true, text)
    for (const text of ['0', 'f', 'F', 'false', 'FALSE', 'False'])
      assert.equal(settings([], { IGNORE_DRA_REQUESTS: text }).ignoreDraRequests, false, text)
    assert.deepEqual(warned({ ENABLE_PROFILING: 'yes' }), ['ENABLE_PROFILING'])
  })

  test('pods with ResourceClaims are ignored where Karpenter does it, and as the cluster is otherwise', () => {
    const ignores = (...args: readonly string[]) => settings(args).ignoreDraRequests
    assert.equal(ignores(), false)
    assert.equal(ignores('--compatibility=karpenter'), true)
    assert.equal(ignores('--compatibility=karpenter', '--ignore-dra-requests=auto'), true)
    assert.equal(ignores('--compatibility=karpenter', '--ignore-dra-requests=false'), false)
    assert.equal(ignores('--ignore-dra-requests'), true)
    assert.equal(complaint(['--ignore-dra-requests=1']), '--ignore-dra-requests=1: use true, false or auto')
    assert.deepEqual(warned({ IGNORE_DRA_REQUESTS: 'maybe' }), ['IGNORE_DRA_REQUESTS'])
  })

  test('OPS-92 what may not be empty ends the start when it is; empty gates are the defaults', () => {
    for (const name of ['PREFERENCE_POLICY', 'MIN_VALUES_POLICY', 'LEADER_ELECTION_NAME', 'LOG_OUTPUT_PATHS'])
      assert.match(complaint([], { [name]: '' }), new RegExp(`^${name}=: (?:give|use) `))
    assert.deepEqual(settings([], { FEATURE_GATES: '' }).featureGates, defaultSettings.featureGates)
  })

  test('a rate below zero is none, and zero stands for the defaults of the Kubernetes client', () => {
    assert.equal(options(['--kube-client-qps=-1']).rate, undefined)
    assert.deepEqual(options(['--kube-client-qps=0', '--kube-client-burst=0']).rate, {
      perSecond: 5,
      burst: 10,
    })
  })

  test('a port that there is not, and no provider, end the start', () => {
    assert.equal(complaint(['--metrics-port=70000']), '--metrics-port=70000: use a port from 0 to 65535')
    assert.equal(complaint([], { METRICS_PORT: '-1' }), 'METRICS_PORT=-1: use a port from 0 to 65535')
    assert.throws(
      () => controllerOptions([], {}, { all: builtInProviders }, undefined),
      /set the cloud provider/,
    )
  })
})

describe('the namespace of the lease', () => {
  test('OPS-12 is that of the pod; outside of one it must be given', () => {
    assert.equal(options([], {}, 'own').leaderElection?.namespace, 'own')
    assert.equal(options([], { LEADER_ELECTION_NAMESPACE: '' }, 'own').leaderElection?.namespace, 'own')
    assert.equal(
      options([], { LEADER_ELECTION_NAMESPACE: 'other' }, 'own').leaderElection?.namespace,
      'other',
    )
    assert.throws(
      () => controllerOptions(['--provider=kwok'], { LEADER_ELECTION_NAMESPACE: '' }, providers, undefined),
      (error) => error instanceof CliError && error.exitCode === 2 && /needs a namespace/.test(error.message),
    )
    const alone = controllerOptions(
      ['--provider=kwok', '--disable-leader-election'],
      {},
      providers,
      undefined,
    )
    assert.ok(alone !== 'help' && alone.leaderElection === undefined)
  })
})

describe('the scheduler configuration', () => {
  const zonal = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' }
  const text = (...constraints: readonly object[]) =>
    JSON.stringify({ podTopologySpread: { defaultConstraints: constraints } })
  const yaml = `
podTopologySpread:
  defaultConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: DoNotSchedule
`

  test('OPS-11 BUF-108 BUF-109 what is wrong with it ends the start; JSON says the same as YAML', () => {
    for (const document of [text(zonal), yaml]) {
      assert.deepEqual(settings(['--scheduler-config', document]).defaultSpread, [zonal])
      assert.deepEqual(settings([], { SCHEDULER_CONFIG: document }).defaultSpread, [zonal])
    }
    const other = { ...zonal, whenUnsatisfiable: 'ScheduleAnyway' }
    assert.deepEqual(settings(['--scheduler-config', text(zonal, other)]).defaultSpread, [zonal, other])
    const { topologyKey: _, ...keyless } = zonal
    const wrong: readonly string[] = [
      'profiles: []',
      text({ ...zonal, extra: 1 }),
      text({ ...zonal, maxSkew: 0 }),
      text(keyless),
      text({ ...zonal, topologyKey: 'not a key' }),
      text({ ...zonal, labelSelector: {} }),
      text({ ...zonal, matchLabelKeys: ['a'] }),
      text({ ...zonal, whenUnsatisfiable: 'Never' }),
      text(zonal, zonal),
      'a: [1',
      'podTopologySpread: {}\npodTopologySpread: {}',
    ]
    for (const document of wrong) {
      assert.match(complaint([], { SCHEDULER_CONFIG: document }), /^SCHEDULER_CONFIG: /, document)
      assert.match(complaint([`--scheduler-config=${document}`]), /^--scheduler-config: /, document)
    }
  })

  test('without one there is no default spread', () => {
    assert.deepEqual(settings([]).defaultSpread, [])
    assert.deepEqual(settings([], { SCHEDULER_CONFIG: '' }).defaultSpread, [])
  })
})

describe('feature gates', () => {
  const gates = (list: string) => settings([`--feature-gates=${list}`]).featureGates

  test('OPS-7 blanks around names and values do no harm, unknown gates are passed over', () => {
    const env = { FEATURE_GATES: 'NodeRepair\t= true,Nothing=false' }
    assert.equal(settings([], env).featureGates.nodeRepair, true)
    assert.deepEqual(warned(env), ['Nothing'])
    assert.equal(gates('nodeOverlay=true').nodeOverlay, false)
    assert.deepEqual(gates('toString=true'), defaultSettings.featureGates)
  })

  test('OPS-8 gates that are not named keep their defaults', () => {
    const { nodeRepair, reservedCapacity } = gates('NodeRepair=true')
    assert.deepEqual([nodeRepair, reservedCapacity], [true, true])
    assert.equal(gates('ReservedCapacity=false').reservedCapacity, false)
  })

  test('OPS-9 OPS-91 an item without a boolean ends the start, a blank one too; empty ones do not', () => {
    for (const list of ['NodeRepair', 'NodeRepair=', 'NodeRepair=maybe', 'Unknown=x', 'NodeRepair=true, '])
      assert.match(
        complaint([], { FEATURE_GATES: list }),
        /^FEATURE_GATES: ".*": give NAME=true or NAME=false/,
        list,
      )
    assert.equal(gates(',,NodeRepair=T').nodeRepair, true)
    assert.match(complaint(['--feature-gates', 'x']), /^--feature-gates: "x"/)
  })

  test('planned placement follows the API server unless it is switched on or off', () => {
    assert.equal(gates('').plannedPlacement, 'auto')
    assert.equal(gates('PlannedPlacement=auto').plannedPlacement, 'auto')
    assert.equal(gates('PlannedPlacement=true').plannedPlacement, true)
    assert.match(complaint(['--feature-gates=NodeOverlay=auto']), /give NAME=true or NAME=false/)
  })

  test('BUF-1 BUF-111 room for CapacityBuffers is kept unless the gate is off, with Karpenter’s mode only if it is named', () => {
    const karpenter = { COMPATIBILITY: 'karpenter' }
    const kept = (env: Readonly<Record<string, string>>): boolean =>
      settings([], env).featureGates.capacityBuffer
    assert.equal(kept({}), true)
    assert.equal(kept({ FEATURE_GATES: 'CapacityBuffer=false' }), false)
    assert.equal(kept(karpenter), false)
    assert.equal(kept({ ...karpenter, FEATURE_GATES: 'NodeRepair=true' }), false)
    assert.equal(kept({ ...karpenter, FEATURE_GATES: 'CapacityBuffer=true' }), true)
    assert.match(complaint([], { FEATURE_GATES: 'CapacityBuffer=maybe' }), /give NAME=true or NAME=false/)
  })
})

describe('compatibility', () => {
  test('with Karpenter everything is off that Tenon adds, what the gates say notwithstanding', () => {
    assert.equal(settings([]).compatibility, 'none')
    for (const read of [
      options(['--compatibility=karpenter']),
      options(['--compatibility', 'karpenter', '--feature-gates=GlobalConsolidation=true,NodeRepair=true']),
      options([], { COMPATIBILITY: 'karpenter' }),
    ]) {
      const { compatibility, featureGates } = read.settings
      assert.equal(compatibility, 'karpenter')
      assert.deepEqual([featureGates.globalConsolidation, featureGates.plannedPlacement], [false, false])
      if (featureGates.nodeRepair)
        assert.deepEqual(read.warnings[0]?.fields['gates'], ['GlobalConsolidation'])
    }
    assert.equal(settings(['--compatibility=none'], { COMPATIBILITY: 'karpenter' }).compatibility, 'none')
    assert.match(complaint(['--compatibility=other']), /--compatibility=other: give none or karpenter/)
  })
})

test('metrics are told in full, or without what grows with the cluster', () => {
  assert.equal(settings([]).metricsDetail, 'full')
  assert.equal(settings([], { METRICS_DETAIL: 'reduced' }).metricsDetail, 'reduced')
  assert.equal(settings(['--metrics-detail=full'], { METRICS_DETAIL: 'reduced' }).metricsDetail, 'full')
  assert.match(complaint(['--metrics-detail=some']), /--metrics-detail=some: give full or reduced/)
})

test('SCA-15 a selector of NodePools gives the controller a lease of its own', () => {
  const read = options(['--node-pools=team in (a,b)'])
  assert.deepEqual(read.settings.nodePools, {
    controller: `kube-system/${read.leaderElection?.name ?? ''}`,
    text: 'team in (a,b)',
    selector: { matchExpressions: [{ key: 'team', operator: 'In', values: ['a', 'b'] }] },
  })
  assert.match(read.leaderElection?.name ?? '', /^karpenter-leader-election-[0-9a-f]{8}$/)
  assert.notEqual(options(['--node-pools=team=c']).leaderElection?.name, read.leaderElection?.name)
  assert.equal(settings([]).nodePools, undefined)
  assert.match(
    complaint(['--node-pools=team=a=b']),
    /--node-pools: unable to parse the label selector at "team=a=b"/,
  )
  assert.match(
    complaint(['--node-pools=team=a', '--disable-leader-election']),
    /--node-pools: needs leader election/,
  )
})

describe('options that tenon up passes on', () => {
  test('without any, the settings are the defaults', () => {
    assert.deepEqual(decisionSettings([]), defaultSettings)
  })

  test('those about decisions are read as by the controller', () => {
    const args = ['--surge-on-drain=auto', '--feature-gates', 'NodeRepair=true', '--pod-deletion-cost']
    const { featureGates, podDeletionCost, surgeOnDrain } = decisionSettings(args)
    assert.deepEqual([featureGates.nodeRepair, podDeletionCost, surgeOnDrain], [true, true, 'annotated'])
  })

  test('those of a process, and what is no option, are refused by name', () => {
    for (const args of [['--metrics-port=1'], ['--node-pools=a=b'], ['web.yaml']])
      assert.throws(() => decisionSettings(args), { message: new RegExp(args[0]?.split('=')[0] ?? '') })
    assert.throws(() => decisionSettings(['--help']), /--surge-on-drain, /)
    assert.throws(() => decisionSettings(['--batch-idle-duration=soon']), /batch-idle-duration/)
  })
})
