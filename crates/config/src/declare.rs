//! The macro that declares settings.

/// Declares a struct whose fields are settings, and implements [`Config`](crate::Config) for it.
///
/// The comment of the struct is the heading on the reference page; that of a field is its meaning.
/// `as "name"` names the setting where the field has another name. A field without a default must
/// be set. `in` bounds a number. `check` names a method that sees all fields, for rules between
/// them. The struct has a `Default` if each of its fields has one.
///
/// ```
/// portolan_config::config! {
///     /// Pages
///     pub struct PageConfig {
///         /// Tools per page.
///         size: usize as "page_size" = 100, in 1..=1000;
///     }
/// }
/// assert_eq!(PageConfig::default().size, 100);
/// ```
#[macro_export]
macro_rules! config {
    (
        $(#[doc = $subject:literal])+
        $vis:vis struct $config:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $type:ty $(as $name:literal)? $(= $default:expr)? $(, in $range:expr)?;
            )*
        }
        $(check $check:ident;)?
    ) => {
        $(#[doc = $subject])+
        #[derive(Debug, Clone)]
        $vis struct $config {
            $($(#[doc = $meaning])+ pub $field: $type,)*
        }

        impl $crate::Config for $config {
            const SUBJECT: &'static str = concat!($($subject),+);
            const SETTINGS: &'static [$crate::Setting] = &[$($crate::declared!(
                [$field $($name)?] [$type $(= $default)?] [$type $(, $range)?] [$($meaning),+]
            ),)*];

            fn read(values: &$crate::Values) -> Result<Self, $crate::ConfigError> {
                let read = Self {
                    $($field: $crate::read!(values, [$type $(= $default)?] $crate::declared!(
                        [$field $($name)?] [$type $(= $default)?] [$type $(, $range)?] [$($meaning),+]
                    )),)*
                };
                $(read.$check()?;)?
                Ok(read)
            }
        }

        $crate::defaults!($config; $($field $(= $default)?,)*);
    };
}

/// One [`Setting`](crate::Setting).
#[doc(hidden)]
#[macro_export]
macro_rules! declared {
    ($name:tt $default:tt $form:tt [$($meaning:literal),+]) => {
        $crate::Setting {
            name: $crate::name!($name),
            default: $crate::default_text!($default),
            form: $crate::form!($form),
            secret: $crate::secret!($form),
            required: $crate::required!($default),
            meaning: concat!($($meaning),+),
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! name {
    ([$field:ident]) => {
        stringify!($field)
    };
    ([$field:ident $name:literal]) => {
        $name
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! default_text {
    ([$type:ty = $default:expr]) => {
        || <$type as $crate::Value>::text(&$default)
    };
    ([$type:ty]) => {
        String::new
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! form {
    ([$type:ty, $range:expr]) => {
        $crate::Form::number($range)
    };
    ([$type:ty]) => {
        <$type as $crate::Value>::FORM
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! secret {
    ([$type:ty $(, $range:expr)?]) => {
        <$type as $crate::Value>::SECRET
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! required {
    ([$type:ty = $default:expr]) => {
        false
    };
    ([$type:ty]) => {
        true
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! read {
    ($values:ident, [$type:ty = $default:expr] $setting:expr) => {
        match $values.get(&$setting)? {
            Some(value) => value,
            None => $default,
        }
    };
    ($values:ident, [$type:ty] $setting:expr) => {
        $values.required(&$setting)?
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! defaults {
    ($config:ident; $($field:ident = $default:expr,)*) => {
        impl Default for $config {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
    ($($required:tt)*) => {};
}
