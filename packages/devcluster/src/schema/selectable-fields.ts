import { ownValue, setOwn } from '@tenon/api'
import type { StoredObject } from '../contract.ts'
import type { Loose } from './columns/cells.ts'

type FieldReader = (object: Loose) => unknown

const objectReference = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

const replicas: Readonly<Record<string, FieldReader>> = {
  'status.replicas': ({ status }) => status?.replicas ?? 0,
}

const readers: Readonly<Record<string, Readonly<Record<string, FieldReader>>>> = {
  '/Pod': {
    'spec.nodeName': ({ spec }) => spec?.nodeName,
    'spec.restartPolicy': ({ spec }) => spec?.restartPolicy,
    'spec.schedulerName': ({ spec }) => spec?.schedulerName,
    'spec.serviceAccountName': ({ spec }) => spec?.serviceAccountName,
    'spec.hostNetwork': ({ spec }) => spec?.hostNetwork === true,
    'status.phase': ({ status }) => status?.phase,
    'status.podIP': ({ status }) => status?.podIPs?.[0]?.ip ?? status?.podIP,
    'status.nominatedNodeName': ({ status }) => status?.nominatedNodeName,
  },
  '/Node': { 'spec.unschedulable': ({ spec }) => spec?.unschedulable === true },
  '/Namespace': { 'status.phase': ({ status }) => status?.phase },
  '/Secret': { type: ({ type }) => type },
  '/Service': {
    'spec.clusterIP': ({ spec }) => spec?.clusterIP,
    'spec.type': ({ spec }) => spec?.type,
  },
  '/Event': {
    ...Object.fromEntries(
      objectReference.map((field) => [
        `involvedObject.${field}`,
        ({ involvedObject }: Loose): unknown => involvedObject?.[field],
      ]),
    ),
    reason: ({ reason }) => reason,
    reportingComponent: ({ reportingComponent }) => reportingComponent,
    source: ({ source, reportingComponent }) => source?.component ?? reportingComponent,
    type: ({ type }) => type,
  },
  'events.k8s.io/Event': {
    ...Object.fromEntries(
      objectReference.map((field) => [
        `regarding.${field}`,
        ({ regarding }: Loose): unknown => regarding?.[field],
      ]),
    ),
    reason: ({ reason }) => reason,
    reportingController: ({ reportingController }) => reportingController,
    type: ({ type }) => type,
  },
  '/ReplicationController': replicas,
  'apps/ReplicaSet': replicas,
  'batch/Job': { 'status.successful': ({ status }) => status?.succeeded ?? 0 },
  'certificates.k8s.io/CertificateSigningRequest': { 'spec.signerName': ({ spec }) => spec?.signerName },
  'resource.k8s.io/ResourceSlice': {
    'spec.nodeName': ({ spec }) => spec?.nodeName,
    'spec.driver': ({ spec }) => spec?.driver,
  },
}

const nothing: Readonly<Record<string, string>> = {}

/** Reads the selectable fields of a kind; absent fields are empty text. */
export function selectableFieldsOf(
  group: string,
  kind: string,
): (object: StoredObject) => Readonly<Record<string, string>> {
  const fields = Object.entries(ownValue(readers, `${group}/${kind}`) ?? {})
  if (fields.length === 0) return () => nothing
  return (object) => {
    const values: Record<string, string> = {}
    for (const [name, read] of fields) setOwn(values, name, String(read(object) ?? ''))
    return values
  }
}
