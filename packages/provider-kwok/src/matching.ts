import { admitsValue, normalizedLabel, type Offering, type Requirement } from '@tenon/api'

/** Values of every `In` requirement on a key, in order. */
export function valuesOf(requirements: readonly Requirement[], key: string): readonly string[] {
  return (
    requirements.find((each) => each.operator === 'In' && normalizedLabel(each.key) === key)?.values ?? []
  )
}

/** Whether each label of an offering or instance type can have an allowed value. */
export function offeringAllows(
  requirements: readonly Requirement[],
  offering: Pick<Offering, 'requirements'>,
): boolean {
  return requirements.every((requirement) => {
    const key = normalizedLabel(requirement.key)
    return offering.requirements.every(
      (offered) =>
        normalizedLabel(offered.key) !== key ||
        offered.operator !== 'In' ||
        (offered.values ?? []).some((value) => admitsValue(requirement, value)),
    )
  })
}
