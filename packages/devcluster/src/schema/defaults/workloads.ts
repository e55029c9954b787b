import type { Loose } from '../columns/cells.ts'
import { each, fill, fillZero, set, within, withinOrEmpty } from './fill.ts'
import { templateDefaults } from './pod-spec.ts'

function specWithTemplate(
  object: Loose,
  defaults: Loose,
  more: (spec: Loose) => Loose = (spec) => spec,
): Loose {
  return within(object, 'spec', (spec) => more(within(fill(spec, defaults), 'template', templateDefaults)))
}

export function deploymentDefaults(deployment: Loose): Loose {
  const defaults = { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 }
  return specWithTemplate(deployment, defaults, (spec) =>
    withinOrEmpty(spec, 'strategy', (strategy) => {
      const filled = fill(strategy, { type: 'RollingUpdate' })
      if (filled['type'] !== 'RollingUpdate') return filled
      return withinOrEmpty(filled, 'rollingUpdate', (update) =>
        fill(update, { maxUnavailable: '25%', maxSurge: '25%' }),
      )
    }),
  )
}

export function replicaSetDefaults(replicaSet: Loose): Loose {
  return specWithTemplate(replicaSet, { replicas: 1 })
}

export function replicationControllerDefaults(controller: Loose): Loose {
  const labels: unknown = controller['spec']?.template?.metadata?.labels
  const filled = specWithTemplate(controller, {
    replicas: 1,
    ...(labels === undefined ? {} : { selector: labels }),
  })
  if (labels === undefined || filled['metadata']?.labels !== undefined) return filled
  return within(filled, 'metadata', (metadata) => ({ ...metadata, labels }))
}

export function statefulSetDefaults(set_: Loose): Loose {
  const defaults = {
    replicas: 1,
    revisionHistoryLimit: 10,
    podManagementPolicy: 'OrderedReady',
  }
  return specWithTemplate(set_, defaults, (spec) => {
    const retained = withinOrEmpty(spec, 'persistentVolumeClaimRetentionPolicy', (policy) =>
      fill(policy, { whenDeleted: 'Retain', whenScaled: 'Retain' }),
    )
    const filled = withinOrEmpty(retained, 'updateStrategy', (strategy) => {
      const typed = fill(
        strategy,
        strategy['type'] === undefined ? { type: 'RollingUpdate', rollingUpdate: {} } : {},
      )
      if (typed['type'] !== 'RollingUpdate') return typed
      return within(typed, 'rollingUpdate', (update) => fill(update, { partition: 0 }))
    })
    return each(filled, 'volumeClaimTemplates', (claim) =>
      claimDefaults(fill(claim, { apiVersion: 'v1', kind: 'PersistentVolumeClaim' })),
    )
  })
}

/** Sets `dataSource` and `dataSourceRef` from each other. */
function dataSources(spec: Loose): Loose {
  const { dataSource, dataSourceRef, ...rest } = spec
  // Of the core group, only claims can be a data source.
  if (dataSource !== undefined && !dataSource.apiGroup && dataSource.kind !== 'PersistentVolumeClaim') {
    return dataSourceRef === undefined ? rest : { ...rest, dataSourceRef }
  }
  if (dataSource !== undefined) return fill(spec, { dataSourceRef: dataSource })
  return dataSourceRef === undefined || dataSourceRef.namespace
    ? spec
    : { ...spec, dataSource: dataSourceRef }
}

export function persistentVolumeClaimDefaults(claim: Loose): Loose {
  return within(claimDefaults(claim), 'spec', dataSources)
}

function claimDefaults(claim: Loose): Loose {
  const filled = within(claim, 'spec', (spec) => fill(spec, { volumeMode: 'Filesystem' }))
  return withinOrEmpty(filled, 'status', (status) => fill(status, { phase: 'Pending' }))
}

export function daemonSetDefaults(daemonSet: Loose): Loose {
  return specWithTemplate(daemonSet, { revisionHistoryLimit: 10 }, (spec) =>
    withinOrEmpty(spec, 'updateStrategy', (strategy) => {
      const typed = fill(strategy, { type: 'RollingUpdate' })
      if (typed['type'] !== 'RollingUpdate') return typed
      return withinOrEmpty(typed, 'rollingUpdate', (update) =>
        fill(update, { maxUnavailable: 1, maxSurge: 0 }),
      )
    }),
  )
}

const maxInt32 = 2_147_483_647

function jobSpecDefaults(spec: Loose): Loose {
  const both = spec['completions'] === undefined && spec['parallelism'] === undefined
  const filled = fill(spec, {
    ...(both ? { completions: 1 } : {}),
    parallelism: 1,
    backoffLimit: spec['backoffLimitPerIndex'] === undefined ? 6 : maxInt32,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed',
  })
  return failurePolicyDefaults(filled)
}

function failurePolicyDefaults(spec: Loose): Loose {
  return within(spec, 'podFailurePolicy', (policy) =>
    each(policy, 'rules', (rule) =>
      each(rule, 'onPodConditions', (pattern) => fillZero(pattern, { status: 'True' })),
    ),
  )
}

/** Selector and template labels of a Job. They contain the uid, so they are set once the object has one. */
function jobSelector(job: Loose): Loose {
  const { uid, name } = job['metadata'] ?? {}
  const spec: Loose = job['spec'] ?? {}
  if (uid === undefined || spec['manualSelector'] === true || spec['selector'] !== undefined) return job
  const labels = {
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
    'controller-uid': uid,
    'job-name': name,
  }
  const template = withinOrEmpty(spec['template'] ?? {}, 'metadata', (metadata) =>
    set(metadata, 'labels', { ...metadata['labels'], ...labels }),
  )
  const selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } }
  return { ...job, spec: { ...spec, selector, template } }
}

export function jobDefaults(job: Loose): Loose {
  const filled = jobSelector(specWithTemplate(job, {}, jobSpecDefaults))
  const labels: unknown = filled['spec']?.template?.metadata?.labels
  if (labels === undefined || filled['metadata']?.labels !== undefined) return filled
  return within(filled, 'metadata', (metadata) => ({ ...metadata, labels }))
}

export function cronJobDefaults(cronJob: Loose): Loose {
  const defaults = {
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  }
  return within(cronJob, 'spec', (spec) =>
    within(fill(spec, defaults), 'jobTemplate', (template) =>
      within(template, 'spec', (job) => within(failurePolicyDefaults(job), 'template', templateDefaults)),
    ),
  )
}

const scaleUp = {
  stabilizationWindowSeconds: 0,
  selectPolicy: 'Max',
  policies: [
    { type: 'Pods', value: 4, periodSeconds: 15 },
    { type: 'Percent', value: 100, periodSeconds: 15 },
  ],
}

const scaleDown = { selectPolicy: 'Max', policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] }

export function autoscalerDefaults(autoscaler: Loose): Loose {
  return within(autoscaler, 'spec', (spec) => {
    const filled = fill(spec, { minReplicas: 1 })
    if (autoscaler['apiVersion'] === 'autoscaling/v1')
      return fill(filled, { targetCPUUtilizationPercentage: 80 })
    const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } }
    return within(
      fill(filled, { metrics: [{ type: 'Resource', resource: cpu }] }),
      'behavior',
      (behavior) => {
        const up = withinOrEmpty(behavior, 'scaleUp', (rules) => fill(rules, scaleUp))
        return withinOrEmpty(up, 'scaleDown', (rules) => fill(rules, scaleDown))
      },
    )
  })
}

export function podGroupDefaults(group: Loose): Loose {
  return within(fill(group, { status: {} }), 'spec', (spec) =>
    fill(withoutEmptyClass(spec), { disruptionMode: 'Pod' }),
  )
}

export function workloadDefaults(workload: Loose): Loose {
  return within(workload, 'spec', (spec) => each(spec, 'podGroupTemplates', withoutEmptyClass))
}

/** An empty class name counts as absent. */
function withoutEmptyClass(spec: Loose): Loose {
  const { priorityClassName, ...others } = spec
  return priorityClassName === '' ? others : spec
}
