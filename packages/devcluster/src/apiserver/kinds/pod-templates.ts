import { ownValue } from '@tenon/api'

/** Where kinds contain a pod template, by collection. */
export const podTemplatePaths: Readonly<Record<string, string>> = {
  'deployments.apps': 'spec.template',
  'replicasets.apps': 'spec.template',
  'statefulsets.apps': 'spec.template',
  'daemonsets.apps': 'spec.template',
  replicationcontrollers: 'spec.template',
  'jobs.batch': 'spec.template',
  'cronjobs.batch': 'spec.jobTemplate.spec.template',
  podtemplates: 'template',
}

/** The value at a path of fields; undefined where a field is absent. */
export function valueAt(object: unknown, path: string): unknown {
  let value = object
  for (const part of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = ownValue(value as Readonly<Record<string, unknown>>, part)
  }
  return value
}
