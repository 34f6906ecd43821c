//! The numbers that papers and code print, against those that each controller starts from: an equation is tested by its
//! vectors, what it is given by default only here.

use paceline::Registry;

/// The defaults of a controller's fields are these.
fn assert_defaults(controller: &str, printed: &[(&str, f64)]) {
    let registry = Registry::standard();
    let fields = registry.get(controller).expect("it is registered").fields();
    for (name, value) in printed {
        let field = fields.iter().find(|field| field.name == *name).unwrap_or_else(|| panic!("{controller}: {name}"));
        assert_eq!(field.default, *value, "{controller}: {name}");
    }
}

/// Carlucci et al., MMSys 2016: sections 3.2 to 3.5, 4.1.2 and 4.2.
#[test]
fn gcc2016() {
    assert_defaults(
        "gcc-2016",
        &[
            ("q", 1e-3),
            ("beta", 0.95),
            ("p_0", 0.1),
            ("k_u", 0.01),
            ("k_d", 0.00018),
            ("overuse_ms", 100.0),
            ("eta", 1.05),
            ("alpha", 0.85),
            ("headroom", 1.5),
            ("window_ms", 500.0),
            ("remb_ms", 1000.0),
            ("loss_low", 0.02),
            ("loss_high", 0.1),
            ("loss_increase", 1.05),
            ("loss_decrease", 0.5),
            ("pacing_factor", 1.5),
        ],
    );
}

/// Atwah, 2015: chapters 3 and 4.
#[test]
fn gcc2015() {
    let printed = [
        ("threshold_ms", 25.0),
        ("alpha_near", 0.95),
        ("alpha_far", 0.9),
        ("headroom", 1.5),
        ("loss_low", 0.02),
        ("loss_high", 0.1),
        ("loss_increase", 1.05),
        ("loss_step", 1000.0),
        ("loss_decrease", 0.5),
    ];
    assert_defaults("gcc-2015", &printed);
    assert_defaults("gcc-dynamic-alpha", &printed);
}

/// RFC 8698, table 2, and the bound of eq. 11 and 12.
#[test]
fn nada() {
    for controller in ["nada", "nada-sender"] {
        assert_defaults(
            controller,
            &[
                ("prio", 1.0),
                ("xref_ms", 10.0),
                ("kappa", 0.5),
                ("eta", 2.0),
                ("tau_ms", 500.0),
                ("delta_ms", 100.0),
                ("logwin_ms", 500.0),
                ("qeps_ms", 10.0),
                ("dfilt_ms", 120.0),
                ("gamma_max", 0.5),
                ("qbound_ms", 50.0),
                ("multiloss", 7.0),
                ("qth_ms", 50.0),
                ("lambda", 0.5),
                ("plrref", 0.01),
                ("pmrref", 0.01),
                ("dloss_ms", 10.0),
                ("dmark_ms", 2.0),
                ("fps", 30.0),
                ("beta_s", 0.1),
                ("beta_v", 0.1),
                ("alpha", 0.1),
                ("beta_most", 0.05),
            ],
        );
    }
}

/// libwebrtc of 2018: what its receiver and its sender share.
const Y2018: [(&str, f64); 14] = [
    ("group_ms", 5.0),
    ("burst_ms", 5.0),
    ("gamma_0", 12.5),
    ("k_u", 0.0087),
    ("k_d", 0.039),
    ("guard_ms", 15.0),
    ("overuse_ms", 10.0),
    ("eta", 1.08),
    ("alpha", 0.85),
    ("headroom", 1.5),
    ("loss_low", 0.02),
    ("loss_high", 0.1),
    ("loss_increase", 1.08),
    ("pacing_factor", 2.5),
];

#[test]
fn gcc_remb_2018() {
    assert_defaults("gcc-remb-2018", &Y2018);
    assert_defaults(
        "gcc-remb-2018",
        &[("q_slope", 1e-13), ("q_offset", 1e-3), ("variance_min", 1.0), ("window_ms", 1000.0), ("remb_ms", 200.0)],
    );
}

#[test]
fn gcc_tfb() {
    assert_defaults("gcc-tfb", &Y2018);
    assert_defaults("gcc-tfb", &[("window", 20.0), ("smoothing", 0.9), ("gain", 4.0), ("acked_ms", 150.0)]);
}
