import type { FieldError, StoredObject } from '../../contract.ts'
import { compileJsonPath } from './json-path.ts'
import type { JsonSchema } from './json-schema.ts'
import type { PrinterColumn } from './printer-columns.ts'
import { structuralErrors } from './structural.ts'

/** The used parts of a CRD's spec. */
export interface CustomResourceDefinitionSpec {
  readonly group: string
  readonly scope: 'Namespaced' | 'Cluster'
  readonly names: {
    readonly plural: string
    readonly kind: string
    readonly singular?: string
    readonly listKind?: string
    readonly shortNames?: readonly string[]
    readonly categories?: readonly string[]
  }
  readonly versions: readonly CustomResourceVersion[]
  readonly preserveUnknownFields?: boolean
}

/** One entry of `spec.versions`. */
export interface CustomResourceVersion {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  readonly schema?: { readonly openAPIV3Schema?: JsonSchema }
  readonly subresources?: {
    readonly status?: object
    readonly scale?: {
      readonly specReplicasPath: string
      readonly statusReplicasPath: string
      readonly labelSelectorPath?: string
    }
  }
  readonly additionalPrinterColumns?: readonly PrinterColumn[]
  readonly selectableFields?: readonly { readonly jsonPath: string }[]
}

const dnsLabel = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const labelWords =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
  "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is " +
  "'[a-z]([-a-z0-9]*[a-z0-9])?')"

type Report = (kind: FieldError['kind'], field: string, detail: string, value?: unknown) => void

/** The problems of a CRD; empty if it can be served. */
export function definitionErrors(crd: StoredObject): readonly FieldError[] {
  const errors: FieldError[] = []
  const report: Report = (kind, field, detail, value) => {
    errors.push({ kind, field, detail, ...(value === undefined ? {} : { value }) })
  }
  const spec = crd['spec'] as Partial<CustomResourceDefinitionSpec> | undefined
  if (spec === undefined) {
    report('required', 'spec', '')
    return errors
  }
  checkNames(crd.metadata.name, spec, report)
  checkVersions(spec, report)
  for (const [index, version] of (spec.versions ?? []).entries()) {
    errors.push(...versionErrors(version, `spec.versions[${index}]`))
  }
  return errors
}

function checkNames(name: string, spec: Partial<CustomResourceDefinitionSpec>, report: Report): void {
  const { group, names } = spec
  if (group === undefined || group === '') report('required', 'spec.group', '')
  else if (!group.includes('.'))
    report('invalid', 'spec.group', 'should be a domain with at least one dot', group)
  if (spec.scope === undefined) report('required', 'spec.scope', '')
  else if (spec.scope !== 'Namespaced' && spec.scope !== 'Cluster') {
    report('notSupported', 'spec.scope', 'supported values: "Cluster", "Namespaced"', spec.scope)
  }
  checkKindNames(names, report)
  if (names?.plural !== undefined && group !== undefined && name !== `${names.plural}.${group}`) {
    report('invalid', 'metadata.name', 'must be spec.names.plural+"."+spec.group', name)
  }
  if (names?.kind !== undefined && names.listKind === names.kind) {
    report('invalid', 'spec.names.listKind', 'kind and listKind may not be the same', names.listKind)
  }
  if (spec.preserveUnknownFields === true) {
    report(
      'invalid',
      'spec.preserveUnknownFields',
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      true,
    )
  }
}

function checkKindNames(names: Partial<CustomResourceDefinitionSpec>['names'], report: Report): void {
  if (names?.plural === undefined) report('required', 'spec.names.plural', '')
  else if (!dnsLabel.test(names.plural)) report('invalid', 'spec.names.plural', labelWords, names.plural)
  if (names?.kind === undefined) report('required', 'spec.names.kind', '')
  else if (!dnsLabel.test(names.kind.toLowerCase())) {
    report(
      'invalid',
      'spec.names.kind',
      `may have mixed case, but should otherwise match: ${labelWords}`,
      names.kind,
    )
  }
}

function checkVersions(spec: Partial<CustomResourceDefinitionSpec>, report: Report): void {
  const versions = spec.versions ?? []
  if (versions.filter((version) => version.storage).length !== 1) {
    report(
      'invalid',
      'spec.versions',
      'must have exactly one version marked as storage version',
      versions.map((version) => version.name),
    )
  }
  const seen = new Set<string>()
  for (const [index, version] of versions.entries()) {
    if (!dnsLabel.test(version.name))
      report('invalid', `spec.versions[${index}].name`, labelWords, version.name)
    if (seen.has(version.name)) {
      report(
        'invalid',
        'spec.versions',
        'must contain unique version names',
        versions.map((one) => one.name),
      )
    }
    seen.add(version.name)
  }
}

const columnTypes = new Set(['integer', 'number', 'string', 'boolean', 'date'])

function versionErrors(version: CustomResourceVersion, path: string): readonly FieldError[] {
  const errors: FieldError[] = []
  const schema = version.schema?.openAPIV3Schema
  if (schema === undefined) {
    errors.push({ kind: 'required', field: `${path}.schema.openAPIV3Schema`, detail: 'schemas are required' })
  } else {
    errors.push(...structuralErrors(schema, `${path}.schema.openAPIV3Schema`))
  }
  for (const [index, column] of (version.additionalPrinterColumns ?? []).entries()) {
    const at = `${path}.additionalPrinterColumns[${index}]`
    if (!columnTypes.has(column.type)) {
      const detail = 'must be one of integer,number,string,boolean,date'
      errors.push({ kind: 'invalid', field: `${at}.type`, value: column.type, detail })
    }
    errors.push(...pathErrors(column.jsonPath, `${at}.jsonPath`))
  }
  for (const [index, { jsonPath }] of (version.selectableFields ?? []).entries()) {
    errors.push(...pathErrors(jsonPath, `${path}.selectableFields[${index}].jsonPath`))
  }
  const scale = version.subresources?.scale
  if (scale !== undefined) {
    errors.push(...pathErrors(scale.specReplicasPath, `${path}.subresources.scale.specReplicasPath`))
    errors.push(...pathErrors(scale.statusReplicasPath, `${path}.subresources.scale.statusReplicasPath`))
  }
  return errors
}

function pathErrors(jsonPath: string | undefined, field: string): readonly FieldError[] {
  if (jsonPath === undefined || jsonPath === '') return [{ kind: 'required', field, detail: '' }]
  if (!jsonPath.startsWith('.') || compileJsonPath(jsonPath) === undefined) {
    return [{ kind: 'invalid', field, value: jsonPath, detail: 'must be a simple json path starting with .' }]
  }
  return []
}
