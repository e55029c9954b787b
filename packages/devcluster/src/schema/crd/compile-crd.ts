import { ownValue, setOwn } from '@tenon/api'
import type { FieldError, ResourceDefinition, StoredObject } from '../../contract.ts'
import { normalizeValue } from '../shape-normalizing.ts'
import { pruneValue } from '../shape-pruning.ts'
import { modelShape } from '../shapes/model-shapes.ts'
import { metadataErrors } from '../validation/metadata.ts'
import { checkShape } from '../validation/shape.ts'
import { validateRules } from './cel-rules.ts'
import { compileSchema } from './compiled-schema.ts'
import {
  type CustomResourceDefinitionSpec,
  type CustomResourceVersion,
  definitionErrors,
} from './definition.ts'
import { applySchemaDefaults } from './defaulting.ts'
import { compileJsonPath } from './json-path.ts'
import type { JsonSchema } from './json-schema.ts'
import { customColumns } from './printer-columns.ts'
import { rootSchemaNode } from './schema-node.ts'
import { validateValue } from './value-validation.ts'

/** A served version, with its CEL rules as a separate function. */
export interface CustomDefinition extends ResourceDefinition {
  /** Errors of CEL rules for a new object. Only reliable if the object is valid otherwise. */
  readonly ruleErrors: (object: StoredObject) => readonly FieldError[]
}

/** The result of compiling a CRD. */
export type CompiledCrd =
  | { readonly definitions: readonly CustomDefinition[]; readonly errors?: undefined }
  | { readonly errors: readonly FieldError[]; readonly definitions?: undefined }

/** By spec: one is checked, then stored and served as it is. */
const compiledSpecs = new WeakMap<object, { readonly name: string; readonly compiled: CompiledCrd }>()

/** Converts a CRD to the definitions of its served versions, or returns its problems. */
export function compileCrd(crd: StoredObject): CompiledCrd {
  const { spec } = crd
  const { name } = crd.metadata
  if (typeof spec !== 'object' || spec === null) return compile(crd)
  const known = compiledSpecs.get(spec)
  if (known?.name === name) return known.compiled
  const compiled = compile(crd)
  compiledSpecs.set(spec, { name, compiled })
  return compiled
}

function compile(crd: StoredObject): CompiledCrd {
  const errors = definitionErrors(crd)
  if (errors.length > 0) return { errors }
  const spec = crd['spec'] as CustomResourceDefinitionSpec
  return {
    definitions: spec.versions
      .filter((version) => version.served)
      .map((version) => definitionOf(spec, version)),
  }
}

function definitionOf(spec: CustomResourceDefinitionSpec, version: CustomResourceVersion): CustomDefinition {
  const { names } = spec
  const schema = version.schema?.openAPIV3Schema ?? { type: 'object' }
  const scale = version.subresources?.scale
  return {
    group: spec.group,
    version: version.name,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: spec.scope === 'Namespaced',
    subresources: [
      ...(version.subresources?.status === undefined ? [] : ['status']),
      ...(scale === undefined ? [] : ['scale']),
    ],
    storage: version.storage,
    columns: customColumns(version.additionalPrinterColumns),
    ...(scale === undefined ? {} : { scale }),
    hasGeneration: true,
    ...behaviour(schema, names.kind, version),
  }
}

/** After such errors CEL rules are not run, as they rely on types, required fields and bounded sizes. */
const blocksRules: ReadonlySet<FieldError['kind']> = new Set([
  'notSupported',
  'required',
  'tooLong',
  'tooMany',
  'typeInvalid',
])

const rulesNotChecked: FieldError = {
  kind: 'invalid',
  field: '',
  value: null,
  detail:
    'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
}

const isIn = (set: WeakSet<object>, value: unknown): boolean =>
  typeof value === 'object' && value !== null && set.has(value)

function behaviour(
  schema: JsonSchema,
  kind: string,
  version: CustomResourceVersion,
): Pick<
  CustomDefinition,
  'schema' | 'applyDefaults' | 'prune' | 'validate' | 'ruleErrors' | 'selectableFields'
> {
  const node = rootSchemaNode(schema, kind)
  const compiled = compileSchema(schema)
  const metadataShape = modelShape('V1ObjectMeta')
  /** Fields of objects that this version has pruned. Stored objects may be older than the schema. */
  const clean = new WeakSet()
  const selectable = (version.selectableFields ?? []).map(
    ({ jsonPath }) => [jsonPath.replace(/^\./, ''), compileJsonPath(jsonPath)] as const,
  )
  return {
    schema: node,
    applyDefaults: (object) => {
      const metadata = normalizeValue(object.metadata, metadataShape) as StoredObject['metadata']
      const normal = metadata === object.metadata ? object : { ...object, metadata }
      return applySchemaDefaults(normal, schema) as StoredObject
    },
    prune: (object, old) => {
      const unknownFields: string[] = []
      const known: Record<string, unknown> = {}
      for (const key in object)
        setOwn(
          known,
          key,
          [ownValue(object, key), ownValue(old, key)].find((value) => isIn(clean, value)),
        )
      const pruned = pruneValue(object, node, '', unknownFields, known) as StoredObject
      for (const key in pruned) {
        const value = ownValue(pruned, key)
        if (typeof value === 'object' && value !== null) clean.add(value)
      }
      return { object: pruned, unknownFields }
    },
    validate: (object, old) => {
      const errors: FieldError[] = [...metadataErrors(object, old, 'subdomain', false)]
      if (object.metadata !== old?.metadata) checkShape(object.metadata, metadataShape, 'metadata', errors)
      const typed = errors.length
      validateValue(object, old, compiled, '', errors)
      if (!compiled.hasRules) return errors
      if (errors.slice(typed).some((error) => blocksRules.has(error.kind))) errors.push(rulesNotChecked)
      else validateRules(object, old, compiled, errors)
      return errors
    },
    ruleErrors: (object) => {
      const errors: FieldError[] = []
      validateRules(object, undefined, compiled, errors)
      return errors
    },
    selectableFields: (object) =>
      Object.fromEntries(selectable.map(([name, path]) => [name, String(path?.(object)[0] ?? '')])),
  }
}
