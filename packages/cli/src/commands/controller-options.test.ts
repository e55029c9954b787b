import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CliError } from '../errors.ts'
import { type ControllerFlags, controllerOptions } from './controller-options.ts'

const flags: ControllerFlags = { provider: 'kwok', disableLeaderElection: true }

function settings(more: Partial<ControllerFlags>, env: Readonly<Record<string, string>> = {}) {
  return controllerOptions({ ...flags, ...more }, env).settings
}

function complaint(schedulerConfig: string): string {
  try {
    settings({ schedulerConfig })
  } catch (error) {
    if (error instanceof CliError) return error.message
    throw error
  }
  return 'none'
}

describe('the scheduler configuration', () => {
  const zonal = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' }
  const json = JSON.stringify({ podTopologySpread: { defaultConstraints: [zonal] } })
  const yaml = `
podTopologySpread:
  defaultConstraints:
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: DoNotSchedule
`

  test('JSON and YAML say the same, as a flag and as a variable', () => {
    for (const text of [json, yaml]) {
      assert.deepEqual(settings({ schedulerConfig: text }).defaultSpread, [zonal])
      assert.deepEqual(settings({}, { SCHEDULER_CONFIG: text }).defaultSpread, [zonal])
    }
  })

  test('without one there is no default spread', () => {
    assert.deepEqual(settings({}).defaultSpread, [])
    assert.deepEqual(settings({}, { SCHEDULER_CONFIG: '' }).defaultSpread, [])
  })

  test('what is wrong with it ends the start', () => {
    assert.match(complaint('a: [1'), /^--scheduler-config: not valid YAML or JSON/)
    assert.match(complaint('a: 1\na: 2'), /not valid YAML or JSON: Map keys must be unique/)
    assert.match(complaint('profiles: []'), /^--scheduler-config: profiles must be left out/)
    assert.match(
      complaint(json.replace('"maxSkew":1', '"maxSkew":0')),
      /\[0\]\.maxSkew must be an integer above 0/,
    )
    assert.throws(() => settings({}, { SCHEDULER_CONFIG: 'x: 1' }), /^CliError: SCHEDULER_CONFIG: x must be/)
  })
})

describe('requests for dynamic resources', () => {
  test('are refused unless the flag or the variable says otherwise', () => {
    assert.equal(settings({}).ignoreDraRequests, true)
    assert.equal(settings({}, { IGNORE_DRA_REQUESTS: 'f' }).ignoreDraRequests, false)
    assert.equal(settings({ ignoreDraRequests: true }, { IGNORE_DRA_REQUESTS: 'f' }).ignoreDraRequests, true)
    assert.equal(settings({ ignoreDraRequests: 'false' }).ignoreDraRequests, false)
  })

  test('a variable that cannot be read leaves the default, a flag ends the start', () => {
    assert.equal(settings({}, { IGNORE_DRA_REQUESTS: 'maybe' }).ignoreDraRequests, true)
    assert.throws(() => settings({ ignoreDraRequests: 'maybe' }), /give true or false/)
    assert.equal(settings({}).clusterStateObservability, true)
    assert.equal(
      settings({}, { DISABLE_CLUSTER_STATE_OBSERVABILITY: 'true' }).clusterStateObservability,
      false,
    )
    assert.equal(settings({ disableClusterStateObservability: true }).clusterStateObservability, false)
  })
})

describe('feature gates', () => {
  const gates = (featureGates: string) => settings({ featureGates }).featureGates

  test('are off unless named; the flag beats the variable', () => {
    assert.equal(settings({}).featureGates.nodeOverlay, false)
    assert.equal(settings({}, { FEATURE_GATES: 'NodeOverlay=true' }).featureGates.nodeOverlay, true)
    const both = settings({ featureGates: '' }, { FEATURE_GATES: 'NodeOverlay=true' })
    assert.equal(both.featureGates.nodeOverlay, false)
    assert.deepEqual(gates(''), settings({}).featureGates)
  })

  test('blanks around names and values, empty items and unknown gates do no harm', () => {
    assert.equal(gates(' NodeOverlay = true ,Unknown=false,,').nodeOverlay, true)
    assert.equal(gates('NodeOverlay=true,NodeOverlay=false').nodeOverlay, false)
    assert.equal(gates('nodeOverlay=true').nodeOverlay, false)
    assert.deepEqual(gates('toString=true'), settings({}).featureGates)
  })

  test('an item that says neither on nor off ends the start', () => {
    for (const text of [
      'NodeOverlay',
      'NodeOverlay=',
      'NodeOverlay=maybe',
      'Unknown=x',
      'NodeOverlay=true, ',
    ])
      assert.throws(() => gates(text), /^CliError: --feature-gates: ".*": give NAME=true or NAME=false/, text)
    assert.throws(() => settings({}, { FEATURE_GATES: 'x' }), /^CliError: FEATURE_GATES: "x"/)
  })

  test('planned placement follows the API server unless it is switched on or off', () => {
    assert.equal(gates('').plannedPlacement, 'auto')
    assert.equal(gates('PlannedPlacement=auto').plannedPlacement, 'auto')
    assert.equal(gates('PlannedPlacement=true').plannedPlacement, true)
    assert.equal(gates('PlannedPlacement=f').plannedPlacement, false)
    assert.throws(() => gates('NodeOverlay=auto'), /give NAME=true or NAME=false/)
  })
})

describe('compatibility', () => {
  test('is none unless the flag or the variable names Karpenter', () => {
    assert.equal(settings({}).compatibility, 'none')
    assert.equal(settings({}, { COMPATIBILITY: 'karpenter' }).compatibility, 'karpenter')
    assert.equal(settings({ compatibility: 'karpenter' }).compatibility, 'karpenter')
    assert.equal(settings({ compatibility: 'none' }, { COMPATIBILITY: 'karpenter' }).compatibility, 'none')
    assert.throws(() => settings({ compatibility: 'other' }), /--compatibility=other: give none or karpenter/)
  })
})
