/** Validates custom resources like the API server, but without one. */
import type { FieldError, StoredObject } from '../../contract.ts'
import { fieldErrorsMessage } from '../field-errors.ts'
import { compileCrd, type CustomDefinition } from './compile-crd.ts'

/** The result of a creation. */
export interface CheckedCustomResource {
  /** The object as it would be stored, if `errors` is empty. */
  readonly object: StoredObject
  /**
   * Why it would be refused: schema, CEL rules, metadata. If the API server skips all rules because of other errors,
   * rules of valid parts are run nevertheless, and an error without a field says so.
   */
  readonly errors: readonly FieldError[]
  /** Paths of fields that kubectl refuses and other clients lose. */
  readonly unknownFields: readonly string[]
}

/** Validates objects of the kinds of its CRDs. */
export interface CrdChecker {
  /** Undefined if no CRD serves this version of this kind. */
  check(object: StoredObject): CheckedCustomResource | undefined
}

/**
 * Creates a checker for the kinds of these CRDs.
 * @throws Error with the problem of a CRD.
 */
export function createCrdChecker(crds: readonly object[]): CrdChecker {
  const definitions = new Map<string, CustomDefinition>()
  for (const crd of crds as readonly StoredObject[]) {
    const { definitions: served, errors } = compileCrd(crd)
    if (errors !== undefined)
      throw new Error(fieldErrorsMessage('CustomResourceDefinition', crd.metadata.name, errors))
    for (const each of served) definitions.set(`${each.group}/${each.version} ${each.kind}`, each)
  }
  return {
    check: (object) => {
      const definition = definitions.get(`${object.apiVersion} ${object.kind}`)
      return definition && checkCreation(definition, object)
    },
  }
}

/** The same steps, in the same order, as for a POST. */
function checkCreation(definition: CustomDefinition, given: StoredObject): CheckedCustomResource {
  const { object: known, unknownFields } = definition.prune(given)
  const { status: _status, ...bare } = known
  const object = definition.applyDefaults(definition.subresources.includes('status') ? bare : known)
  const errors = definition.validate(object, undefined)
  const isComplete = errors.every(({ field }) => field !== '')
  const others = isComplete ? [] : unaffectedRuleErrors(definition, object, errors)
  return { object, errors: [...errors, ...others], unknownFields }
}

/** A rule only sees what is below its field. */
function unaffectedRuleErrors(
  definition: CustomDefinition,
  object: StoredObject,
  errors: readonly FieldError[],
): readonly FieldError[] {
  const isRelated = (field: string) =>
    errors.some((error) => isWithin(error.field, field) || isWithin(field, error.field))
  return definition.ruleErrors(object).filter(({ field }) => !isRelated(field))
}

function isWithin(field: string, parent: string): boolean {
  return (
    parent !== '' && (field === parent || field.startsWith(`${parent}.`) || field.startsWith(`${parent}[`))
  )
}
